"""Tables: what is public about them, their files, and the way back from coordinates to words."""
