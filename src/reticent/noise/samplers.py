"""The interface of a source of random numbers, and the seeded source for experiments.

Every draw is an integer or a yes/no decision. No textbook floating-point sampler is used, because
the bits of a double drawn by ``scale * log(u)`` tell an observer which value the noise was added
to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Booleans, Integers
from reticent.core.checks import positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.noise.digits import long_uniform

Shape = int | tuple[int, ...]

LARGEST_SCALE = 2.0**50
"""Wider distributions are refused, because their draws would come near the end of int64."""

_WORD_MAX = np.uint64(2**64 - 1)
_MANTISSA_BITS = 53
_HEAD_BITS = 64 - _MANTISSA_BITS


class Sampler(ABC):
    """Random integers and decisions, whole arrays at a time.

    Attributes:
        name: name of the source in a receipt.
        seeded: whether a caller's seed drives the numbers. Releases from a seeded source are
            *not private*.

    References:
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264 (the reason why releases draw integers exactly and never
          doubles).
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010 (exact sampling of discrete distributions).

    See Also:
        reticent.noise.SecureSampler: releases.
        reticent.noise.AuditSampler: audits.
        reticent.noise.SeededSampler: experiments.
    """

    name: str
    seeded: bool

    @abstractmethod
    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return ``count`` independent uniform 64-bit words."""

    @abstractmethod
    def discrete_laplace(self, shape: Shape, *, scale: float) -> Integers:
        """Return integers v with probability proportional to exp(-|v| / scale)."""

    @abstractmethod
    def discrete_gaussian(self, shape: Shape, *, sigma: float) -> Integers:
        """Return integers v with probability proportional to exp(-v**2 / (2 sigma**2))."""

    def geometric(self, shape: Shape, *, scale: float) -> Integers:
        """Return integers k >= 0 with probability proportional to exp(-k / scale).

        Given its sign, a discrete Laplace draw is such a distribution: v on v >= 0, and -v - 1
        on v < 0. So no draw is wasted.
        """
        draw = self.discrete_laplace(shape, scale=scale)
        return np.asarray(np.where(draw >= 0, draw, -1 - draw))

    def uniform_integers(self, high: npt.ArrayLike) -> Integers:
        """Return exactly uniform integers on 0 .. high - 1, one for each entry of ``high``.

        Args:
            high: any shape, int64, at least 1.

        Raises:
            InvalidInput: an entry below 1.

        Example:
            >>> SeededSampler(0).uniform_integers([1, 1]).tolist()
            [0, 0]
        """
        ends = checked_ends(high)
        return long_uniform(ends.ravel(), self.words).reshape(ends.shape)

    def quotient_coins(self, numerators: Integers, denominators: Integers) -> Booleans:
        """Return True with *exactly* the probability prod_j numerators[i, j] / denominators[i, j],
        for each row i.

        Args:
            numerators: at least 0 and at most the denominators, broadcast to their shape.
            denominators: shape (n, m), at least 1.

        Returns:
            Shape (n,).
        """
        return np.asarray((self.uniform_integers(denominators) < numerators).all(axis=1))

    def bernoulli(self, probability: npt.ArrayLike) -> Booleans:
        """Return True with *exactly* the given float64 probability, for each entry.

        For a double p = M 2^-53 2^-k the question is whether a uniform real starts with k zero bits
        followed by 53 bits below M. Both are integer comparisons of fresh random bits, so there is
        no smallest probability and no rounding.

        Args:
            probability: any shape, in [0, 1].

        Raises:
            InvalidInput: an entry outside [0, 1] or NaN. Values are never shown.
        """
        p = checked_probabilities(probability)
        fraction, exponent = np.frexp(p.ravel())
        numerator = np.ldexp(fraction, _MANTISSA_BITS).astype(np.uint64)
        zeros = np.maximum(-exponent.astype(np.int64), 0)
        words = self.words(p.size)
        head = np.minimum(zeros, _HEAD_BITS)
        tail = words & np.uint64(2**_MANTISSA_BITS - 1)
        # The top `head` of the 11 bits above the mantissa must vanish. A shift by 64 is not
        # defined, hence the mask.
        mask = _WORD_MAX ^ (_WORD_MAX >> head.astype(np.uint64))
        success = (tail < numerator) & ((words & mask) == 0)
        success |= p.ravel() >= 1
        missing = zeros - head
        while True:
            open_ = np.flatnonzero(success & (missing > 0))
            if not open_.size:
                return np.asarray(success.reshape(p.shape))
            now = np.minimum(missing[open_], 63)
            block_mask = _WORD_MAX ^ (_WORD_MAX >> now.astype(np.uint64))
            success[open_] = (self.words(open_.size) & block_mask) == 0
            missing[open_] -= now

    def categorical(self, weights: npt.ArrayLike) -> Integers:
        """Return column i of each row with probability weights[i] / sum(weights).

        Columns are offered in order and taken with the share that is left. Of the two outcomes the
        rarer one is drawn. So the probability of *every* column is right to within a relative error
        of (columns + 2) 2^-51, as long as no quotient of two weights is below 2^-1000 (a double
        that small has fewer digits). The number of draws does not depend on the weights.

        Args:
            weights: shape (n, c), non-negative, finite, at least one positive weight in each row.

        Returns:
            Shape (n,), int64, in 0 .. c - 1.

        Raises:
            InvalidInput: wrong shape, or weights that are negative, not finite or all zero in a
                row.
        """
        share = np.asarray(weights, dtype=np.float64)
        if share.ndim != 2 or share.shape[1] < 1:
            raise InvalidInput(
                f"categorical: expected shape (n, c) with c at least 1, got shape={share.shape}"
            )
        left = np.cumsum(share[:, ::-1], axis=1)[:, ::-1]
        if share.size and not bool(
            np.isfinite(left).all() and (share >= 0).all() and (left[:, 0] > 0).all()
        ):
            raise InvalidInput(
                "categorical: expected finite non-negative weights with a positive sum in every row"
            )
        if share.shape[1] == 1:
            return np.zeros(len(share), dtype=np.int64)
        reachable = left[:, :-1] > 0
        take = np.divide(
            share[:, :-1], left[:, :-1], out=np.zeros_like(left[:, :-1]), where=reachable
        )
        skip = np.divide(left[:, 1:], left[:, :-1], out=np.ones_like(left[:, :-1]), where=reachable)
        rare = self.bernoulli(np.minimum(take, skip))
        taken = np.where(take <= skip, rare, ~rare)
        return np.asarray(
            np.where(taken.any(axis=1), taken.argmax(axis=1), share.shape[1] - 1), dtype=np.int64
        )


class SeededSampler(Sampler):
    """Repeatable numbers for experiments and audits, from numpy's PCG64. *Not private.*

    The distributions are the same but drawn in double precision. An experiment sees the right
    distribution, but the numbers must never protect anybody.

    Args:
        seed: anything that ``numpy.random.default_rng`` accepts.

    Example:
        >>> SeededSampler(0).discrete_laplace((2, 2), scale=10.0).shape
        (2, 2)

    Utility:
        The stated distributions to double precision, which suits an experiment and promises nothing
        to anybody.

    Runtime:
        0.02 (Laplace) and 0.05 (Gaussian) microseconds a number on one core
        (benchmarks/runtimes.py).

    References:
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264 (the leak of noise in doubles).

    See Also:
        reticent.noise.AuditSampler: seeded, and exact.
        reticent.noise.SecureSampler: releases.
    """

    name = "numpy PCG64, seeded: not private"
    seeded = True

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return uniform 64-bit words from the seeded generator."""
        return self._rng.integers(0, _WORD_MAX, size=count, dtype=np.uint64, endpoint=True)

    def discrete_laplace(self, shape: Shape, *, scale: float) -> Integers:
        """Return the difference of two geometric variables of success probability 1 - exp(-1 /
        scale).
        """
        success = -np.expm1(-1.0 / checked_scale(scale, "scale"))
        return np.asarray(
            self._rng.geometric(success, size=shape) - self._rng.geometric(success, size=shape)
        )

    def discrete_gaussian(self, shape: Shape, *, sigma: float) -> Integers:
        """Return discrete Laplace proposals thinned to the Gaussian (Canonne, Kamath and Steinke
        2020, algorithm 3).
        """
        checked_scale(sigma, "sigma")
        laplace_scale = np.floor(sigma) + 1
        values = np.empty(int(np.prod(shape)), dtype=np.int64)
        pending = np.arange(values.size)
        while pending.size:
            proposal = self.discrete_laplace(pending.size, scale=laplace_scale)
            gap = (np.abs(proposal) - sigma * sigma / laplace_scale) / sigma
            kept = self._rng.random(pending.size) < np.exp(-0.5 * gap * gap)
            values[pending[kept]] = proposal[kept]
            pending = pending[~kept]
        return values.reshape(shape)


def checked_scale(scale: float, name: str) -> float:
    """Return ``scale`` as a float above 0 and at most 2^50.

    Raises:
        InvalidParameter: out of that range, or not a number.
    """
    number = positive(scale, name=name)
    if number > LARGEST_SCALE:
        raise InvalidParameter(
            f"{name}={scale!r}: expected at most 2**50 grid steps; raise epsilon or coarsen "
            "the grid"
        )
    return number


def checked_ends(high: npt.ArrayLike) -> Integers:
    """Return ``high`` as int64, each entry at least 1.

    Raises:
        InvalidInput: an entry below 1.
    """
    ends = np.asarray(high, dtype=np.int64)
    if ends.size and ends.min() < 1:
        raise InvalidInput("uniform_integers: expected every upper end to be at least 1")
    return ends


def checked_probabilities(probability: npt.ArrayLike) -> Array:
    """Return ``probability`` as float64 in [0, 1].

    Raises:
        InvalidInput: an entry outside, or NaN. Values are never shown.
    """
    chances = np.asarray(probability, dtype=np.float64)
    if chances.size and not bool(((chances >= 0) & (chances <= 1)).all()):
        raise InvalidInput("bernoulli: expected probabilities in [0, 1]")
    return chances
