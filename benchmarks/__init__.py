"""How fast, how tight, how large: ``python -m benchmarks``."""
