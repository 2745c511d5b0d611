"""Encoders of table rows: the Power Mechanism as published, and ours, whose Lipschitz constant
is known.
"""
