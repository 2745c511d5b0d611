"""Templates and plots for the pages and pictures of demonstrations and papers."""
