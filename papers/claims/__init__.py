"""Stated guarantees of libraries, of recipes, and of our own mechanisms, tested in one table."""
