"""Posthoc release: the papers' tables and figures, and the demonstration."""
