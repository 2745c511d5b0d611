"""Rows of a table as vectors from which any model may learn one target."""
