"""Samplers safe on floating point for releases, and seeded ones for experiments."""

from reticent.noise.grids import Grid
from reticent.noise.k_norm import k_norm, l2_epsilon_margin
from reticent.noise.samplers import Sampler, SecureSampler, SeededSampler

__all__ = ["Grid", "Sampler", "SecureSampler", "SeededSampler", "k_norm", "l2_epsilon_margin"]
