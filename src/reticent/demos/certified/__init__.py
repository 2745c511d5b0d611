"""Labels of a model trained without noise on private records."""
