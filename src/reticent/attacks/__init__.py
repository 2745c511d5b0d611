"""Attacks on released values, run beside every guarantee."""
