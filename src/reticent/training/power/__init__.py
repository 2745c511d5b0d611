"""Encoders of table rows whose Lipschitz constant is known."""
