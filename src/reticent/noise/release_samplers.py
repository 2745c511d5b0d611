"""The samplers that a release may draw from. They are exact, work on whole arrays, and take their
words from the operating system.
"""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Booleans, Integers
from reticent.noise.digits import (
    LARGEST_SHORT_END,
    blocks,
    double_coins,
    enclosed_coins,
    long_uniform,
    short_uniform,
)
from reticent.noise.expansions import Quotient
from reticent.noise.gaussian import discrete_gaussian
from reticent.noise.geometric import geometric_digits
from reticent.noise.samplers import (
    Sampler,
    Shape,
    checked_ends,
    checked_probabilities,
    checked_scale,
)

_DEVICE = "/dev/urandom"


def system_words(count: int) -> npt.NDArray[np.uint64]:
    """Return ``count`` independent uniform 64-bit words.

    There is no store of words. Each call asks the kernel for all the words that it needs, so a
    forked process, another thread or a later call cannot meet the same words. The caller owns the
    only copy and can overwrite it. (Where there is no ``/dev/urandom``, ``os.urandom`` is asked,
    which leaves one more copy to the memory allocator.)

    Args:
        count: number of words, 0 or more.

    Example:
        >>> system_words(3).shape
        (3,)
    """
    block = np.empty(count, dtype=np.uint64)
    if not count:
        return block
    target = block.view(np.uint8).data
    device = _open_device()
    if device is None:
        target[:] = os.urandom(len(target))
        return block
    try:
        filled = 0
        while filled < len(target):
            got = os.readv(device, [target[filled:]])
            if got <= 0:
                raise OSError(f"{_DEVICE}: no random bytes")
            filled += got
    finally:
        os.close(device)
    return block


def _open_device() -> int | None:
    """Return the kernel's generator as a file, or None where there is none.

    It is opened for each block, because others may close a kept descriptor, which would then stand
    for another file.
    """
    _generator_is_seeded()
    try:
        device = os.open(_DEVICE, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return None
    if stat.S_ISCHR(os.fstat(device).st_mode):
        return device
    os.close(device)
    return None


@lru_cache(maxsize=1)
def _generator_is_seeded() -> None:
    """Return once the kernel has collected enough randomness after booting. The device does not
    wait for that.
    """
    os.urandom(1)


class ExactSampler(Sampler):
    """Exact distributions, whole arrays at a time, on the words that a subclass gives.

    **Guarantee.** If ``words`` gives independent uniform words, every draw has exactly the
    distribution that its method states, for the exact values of the float64 parameters, and draws
    are independent of each other. There is no smallest probability, no cut tail and no rounding
    (docs/noise.md has the proofs). Magnitudes of 2^62 and more come out as some number from 2^62 to
    2^62 + 2^53.

    *Number of words.* It depends on parameters, counts and the draws. It never depends, but for
    2^-80 a coin, on a probability that was passed to ``bernoulli``.

    Utility:
        Exact: no tail is cut and no probability rounded.

    Runtime:
        0.04 (Laplace) and 0.09 (Gaussian) microseconds a number at scale 2^20 with words of the
        operating system (benchmarks/runtimes.py).

    References:
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010 (the distributions, and rejection from discrete Laplace to Gaussian).
        - Karney (2016), "Sampling exactly from the normal distribution", arXiv:1303.6257 (exact
          coins from as many digits as a decision needs).
        - Lemire (2019), "Fast random integer generation in an interval", arXiv:1805.10941,
          algorithm 5 (uniform integers).
        - Ghosh, Roughgarden and Sundararajan (2009), "Universally utility-maximizing privacy
          mechanisms", arXiv:0811.2841 (the geometric mechanism).
        - Proofs: docs/noise.md.

    See Also:
        reticent.noise.SecureSampler: words of the operating system.
        reticent.noise.AuditSampler: words of a seeded generator.
    """

    @override
    def discrete_laplace(self, shape: Shape, *, scale: float) -> Integers:
        digits = geometric_digits(checked_scale(scale, "scale"))
        return digits.laplace(_size(shape), self.words).reshape(shape)

    @override
    def geometric(self, shape: Shape, *, scale: float) -> Integers:
        digits = geometric_digits(checked_scale(scale, "scale"))
        return digits.geometric(_size(shape), self.words).reshape(shape)

    @override
    def discrete_gaussian(self, shape: Shape, *, sigma: float) -> Integers:
        return discrete_gaussian(_size(shape), checked_scale(sigma, "sigma"), self.words).reshape(
            shape
        )

    @override
    def uniform_integers(self, high: npt.ArrayLike) -> Integers:
        ends = checked_ends(high)
        draw = short_uniform if ends.max(initial=1) <= LARGEST_SHORT_END else long_uniform
        return draw(ends.ravel(), self.words).reshape(ends.shape)

    @override
    def bernoulli(self, probability: npt.ArrayLike) -> Booleans:
        chances = checked_probabilities(probability)
        shown = np.empty(chances.size, dtype=np.bool_)
        for place in blocks(chances.size):
            shown[place] = double_coins(chances.ravel()[place], self.words)
        return shown.reshape(chances.shape)

    @override
    def quotient_coins(self, numerators: Integers, denominators: Integers) -> Booleans:
        rows, factors = denominators.shape
        above = np.broadcast_to(numerators, denominators.shape)
        # Two conversions, a division and a product round by 2^-53 each for every factor.
        approximate = np.prod(above / denominators, axis=1)
        error = (factors + 1) * 2.0**-45
        shown = np.empty(rows, dtype=np.bool_)
        for place in blocks(rows):

            def exact(row: int, first: int = place.start) -> Quotient:
                return Quotient(_product(above[first + row]), _product(denominators[first + row]))

            shown[place] = enclosed_coins(approximate[place], error, exact, self.words)
        return shown


class SecureSampler(ExactSampler):
    """The release path: exact distributions on the operating system's random words.

    Example:
        >>> SecureSampler().seeded
        False

    Utility:
        Exact: no tail is cut and no probability rounded.

    Runtime:
        0.04 (Laplace) and 0.09 (Gaussian) microseconds a number at scale 2^20 on one core
        (benchmarks/runtimes.py). OpenDP takes 7 and 12 (benchmarks/noise.py).

    References:
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264 (the attack on noise in doubles).
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010 (the distributions).
        - Proofs: docs/noise.md.

    See Also:
        reticent.noise.AuditSampler: the same code, repeatable, for audits.
    """

    name = "exact distributions, words of the operating system"
    seeded = False

    words = staticmethod(system_words)


class AuditSampler(ExactSampler):
    """The very code that releases, on words of a seeded generator. It is repeatable and *not
    private*.

    Audits draw with it, so that they examine the code that releases.

    Args:
        seed: anything that ``numpy.random.default_rng`` accepts.

    Example:
        >>> AuditSampler(0).discrete_laplace((2, 2), scale=10.0).shape
        (2, 2)

    Utility:
        Exact, as the release path that it stands for, and not private.

    Runtime:
        0.02 (Laplace) and 0.05 (Gaussian) microseconds a number on one core
        (benchmarks/runtimes.py).

    References:
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010 (the distributions).
        - Proofs: docs/noise.md.

    See Also:
        reticent.noise.SecureSampler: releases.
        reticent.noise.SeededSampler: double precision.
    """

    name = "exact distributions, seeded words: not private"
    seeded = True

    def __init__(self, seed: Any) -> None:
        self._rng = np.random.default_rng(seed)

    @override
    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return uniform 64-bit words from numpy's PCG64."""
        return self._rng.integers(0, 2**64, size=count, dtype=np.uint64)


def _size(shape: Shape) -> int:
    return int(np.prod(shape))


def _product(factors: Integers) -> int:
    product = 1
    for factor in factors.tolist():
        product *= factor
    return product
