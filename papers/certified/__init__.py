"""Certified private prediction: the paper's table and figures."""
