"""Samplers safe on floating point for releases, and seeded ones for experiments and audits."""

from reticent.noise.grids import Grid
from reticent.noise.k_norm import k_norm, l2_epsilon_margin
from reticent.noise.release_samplers import (
    AuditSampler,
    ExactSampler,
    SecureSampler,
)
from reticent.noise.samplers import Sampler, SeededSampler

__all__ = [
    "AuditSampler",
    "ExactSampler",
    "Grid",
    "Sampler",
    "SecureSampler",
    "SeededSampler",
    "k_norm",
    "l2_epsilon_margin",
]
