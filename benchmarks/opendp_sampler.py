"""OpenDP's exact draws under our interface of samplers, as a peer."""

from __future__ import annotations

from typing import Any

import numpy as np
import opendp.prelude as opendp
from typing_extensions import override

from reticent.core.arrays import Integers
from reticent.noise.release_samplers import system_words
from reticent.noise.samplers import Sampler, Shape

opendp.enable_features("contrib")


class OpenDPSampler(Sampler):
    """Discrete Laplace and Gaussian draws of OpenDP, and words of the operating system."""

    name = "OpenDP and words of the operating system"
    seeded = False

    words = staticmethod(system_words)

    @override
    def discrete_laplace(self, shape: Shape, *, scale: float) -> Integers:
        return _measure(opendp.m.make_laplace, opendp.l1_distance(T="i64"), scale, shape)

    @override
    def discrete_gaussian(self, shape: Shape, *, sigma: float) -> Integers:
        return _measure(opendp.m.make_gaussian, opendp.l2_distance(T="f64"), sigma, shape)


def _measure(make: Any, metric: Any, scale: float, shape: Shape) -> Integers:
    """Return noise alone, the measurement's answer on zeros."""
    zeros = np.zeros(int(np.prod(shape)), dtype=np.int64)
    measurement = make(opendp.vector_domain(opendp.atom_domain(T="i64")), metric, scale=scale)
    return np.asarray(measurement(zeros), dtype=np.int64).reshape(shape)
