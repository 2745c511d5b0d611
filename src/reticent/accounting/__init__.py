"""Immutable privacy events, their composition, and durable budgets."""
