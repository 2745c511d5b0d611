"""Labels and a student model from private records."""
