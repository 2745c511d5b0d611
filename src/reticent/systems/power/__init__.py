"""Rows of a table as vectors that any model can learn from."""
