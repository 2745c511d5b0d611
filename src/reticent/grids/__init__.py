"""Whole-number arithmetic with directed rounding: why a certificate is the same on every
machine, alone or in a batch.
"""
