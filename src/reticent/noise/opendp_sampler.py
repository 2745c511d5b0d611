"""OpenDP's discrete distributions in place of ours: an independent implementation, to compare
with or to prefer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.extras import require
from reticent.noise.operating_system import system_words
from reticent.noise.samplers import Integers, Sampler, Shape, checked_scale


class OpenDPSampler(Sampler):
    """Discrete Laplace and Gaussian draws of OpenDP; everything else from the operating system's
    words.

    Exact as well, and a hundred times slower (benchmarks/noise.py). OpenDP is imported when the
    first one is made.

    Raises:
        MissingExtra: OpenDP is not installed.

    Example:
        >>> OpenDPSampler().discrete_laplace(3, scale=10.0).shape
        (3,)

    Utility:
        Exact, by another implementation.

    Runtime:
        7 (Laplace) and 12 (Gaussian) microseconds a number on one core (benchmarks/runtimes.py).

    References:
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, the algorithms that OpenDP implements.

    See Also:
        reticent.noise.SecureSampler: a hundred times faster.
        reticent.noise.release_sampler: by name.
    """

    seeded = False

    def __init__(self) -> None:
        self.name = f"OpenDP {_opendp().__version__} and words of the operating system"

    @override
    def words(self, count: int) -> npt.NDArray[np.uint64]:
        return system_words(count)

    @override
    def discrete_laplace(self, shape: Shape, *, scale: float) -> Integers:
        return _measure(_laplace(checked_scale(scale, "scale")), shape)

    @override
    def discrete_gaussian(self, shape: Shape, *, sigma: float) -> Integers:
        return _measure(_gaussian(checked_scale(sigma, "sigma")), shape)


@lru_cache(maxsize=1)
def _opendp() -> Any:
    opendp = require("opendp.prelude", extra="opendp")
    opendp.enable_features("contrib")
    return opendp


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    opendp = _opendp()
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    return opendp.m.make_laplace(*space, scale=scale)


@lru_cache(maxsize=64)
def _gaussian(sigma: float) -> Any:
    opendp = _opendp()
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T="f64")
    return opendp.m.make_gaussian(*space, scale=sigma)


def _measure(measurement: Any, shape: Shape) -> Integers:
    """Noise alone: the measurement's answer on zeros. OpenDP saturates at the ends of int64, it
    never wraps.
    """
    count = int(np.prod(shape))
    if count == 0:
        return np.zeros(shape, dtype=np.int64)
    return np.asarray(measurement(np.zeros(count, dtype=np.int64)), dtype=np.int64).reshape(shape)
