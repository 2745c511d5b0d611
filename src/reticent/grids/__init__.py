"""Whole-number arithmetic with directed rounding, by which a certificate is the same on every
machine, alone or in a batch.
"""
