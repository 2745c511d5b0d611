"""Posthoc release: the papers' tables and figures."""
