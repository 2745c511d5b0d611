"""Samplers safe on floating point for releases, and seeded ones for experiments."""
