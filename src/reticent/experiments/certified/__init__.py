"""Certified private prediction: the paper's table and figures, and the demonstration."""
