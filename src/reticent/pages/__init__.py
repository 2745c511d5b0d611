"""What the pages and pictures of demonstrations and papers are made of: templates and plots."""
