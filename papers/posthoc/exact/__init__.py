"""Exact local Lipschitz constants of small ReLU networks, by complete search."""
