"""Labels and models from private records: what each method is worth at one guarantee."""
