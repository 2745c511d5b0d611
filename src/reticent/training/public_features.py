"""Features learned without labels from public pictures, and principal components of public rows."""
