"""Randomised maps with a proved cost, one file each."""
