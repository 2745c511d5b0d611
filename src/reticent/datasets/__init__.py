"""Loaders of public data files, and nothing else."""
