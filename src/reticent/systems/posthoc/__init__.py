"""Posthoc release of one input: an embedding, or a label."""
