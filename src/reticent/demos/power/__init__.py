"""Rows of a table to a server that may train any model."""
