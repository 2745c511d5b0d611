"""Private-kNN: labels of public queries from private records."""
