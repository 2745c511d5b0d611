"""K-norm noise on integer vectors: probability proportional to exp(-||v|| / scale) for l-infinity
and l2.

Both distributions are mixtures of uniform distributions on nested balls. If a radius K >= 0 has
weight N(K) q^K, where q = exp(-1/scale) and N(K) is the number of integer vectors with ||v|| <= K,
and v is uniform among them, then

    P(v)  ~  sum over K >= ||v|| of q^K  =  q^ceil(||v||) / (1 - q).

For l-infinity N(K) = (2K + 1)^m and the norm of an integer vector is an integer, so this is
exp(-||v||/scale) exactly. For l2 it is exp(-ceil(||v||)/scale). As ceil(a + b) <=
ceil(a) + ceil(b), a shift by a vector of norm at most an integer D still costs at most D/scale.
"""

from __future__ import annotations

import math

import numpy as np

from reticent.core.arrays import Booleans, Integers
from reticent.core.errors import InvalidParameter, UnsupportedNorm
from reticent.core.norms import Norm
from reticent.noise.samplers import Sampler

LARGEST_L2_DIMENSION = 64
"""Beyond this the charge of ``l2_epsilon_margin`` would show, and Gaussian noise is the better
distribution there anyway.
"""

_FINE_BITS = 59

_LARGEST_MEAN_RADIUS = 2.0**52
_RADIUS_LIMIT = 2**61
"""A radius that could reach this is drawn again. One of its m + 1 parts is then 512 times the scale
or more, which happens with probability (m + 1) e^-512 at most, below 10^-200. At the scale of 2^21
of a mechanism of epsilon 1 it is below e^-(2^30).
"""


def k_norm(rows: int, dimension: int, *, scale: float, norm: Norm, sampler: Sampler) -> Integers:
    """Return independent draws of the K-norm distribution, shape (rows, dimension), int64.

    Args:
        rows: number of vectors, 0 or more.
        dimension: m, number of coordinates, at least 1, and at most 64 for l2.
        scale: scale in exp(-||v|| / scale), in grid steps. For l2 the norm is rounded up and the
            scale is at least 1.
        norm: ``LINF`` or ``L2``.
        sampler: source of randomness.

    Raises:
        UnsupportedNorm: l1 (draw independent discrete Laplace variables), or l2 with more than 64
            coordinates.
        InvalidParameter: ``scale`` is not positive, below 1 for l2, above 2**50, or above 2**52 /
            (m + 1).

    Example:
        >>> from reticent.noise import SecureSampler
        >>> k_norm(5, 3, scale=10.0, norm=Norm.LINF, sampler=SecureSampler()).shape
        (5, 3)

    Utility:
        l-infinity: exact. l2: every probability within a relative m^3 2^-39, which
        ``l2_epsilon_margin`` charges.

    Runtime:
        O(m) a vector, 0.8 (l-infinity) and 2 to 4 (l2) microseconds for m = 8 on one core
        (benchmarks/runtimes.py).

    References:
        - Hardt and Talwar (2010), "On the geometry of differential privacy", arXiv:0907.3754,
          section 4.
        - The integer form: docs/mechanisms.md.

    See Also:
        reticent.mechanisms.KNormMechanism: the mechanism.
        reticent.noise.l2_epsilon_margin: the cost of l2.
    """
    if norm is Norm.L1:
        raise UnsupportedNorm(
            "K-norm noise in l1 is independent Laplace noise; use LaplaceMechanism"
        )
    if norm is Norm.L2 and dimension > LARGEST_L2_DIMENSION:
        raise UnsupportedNorm(
            f"l2 K-norm noise in {dimension} dimensions: expected at most 64; use GaussianMechanism"
        )
    if norm is Norm.L2 and not scale >= 1.0:
        raise InvalidParameter(
            f"scale={scale!r}: expected at least one grid step for l2 noise; use a finer grid"
        )
    if (dimension + 1) * scale > _LARGEST_MEAN_RADIUS:
        raise InvalidParameter(
            f"scale={scale!r}, dimension={dimension!r}: expected (dimension + 1) * scale of at "
            "most 2**52 steps; raise epsilon"
        )
    draw = _linf if norm is Norm.LINF else _l2
    noise = np.zeros((rows, dimension), dtype=np.int64)
    pending = np.arange(rows)
    while pending.size:
        vectors, kept = draw(pending.size, dimension, scale, sampler)
        noise[pending[kept]] = vectors[kept]
        pending = pending[~kept]
    return noise


def l2_epsilon_margin(dimension: int) -> float:
    """Return the largest cost in epsilon of the l2 sampler's arithmetic: m^3 2^-38, for a scale of
    at least 2^20 steps.

    Every probability is right to within a relative m^3 2^-39 (proved at ``_l2``), and a privacy
    loss compares two of them.

    Example:
        >>> l2_epsilon_margin(8) < 2e-9
        True

    References:
        - Hardt and Talwar (2010), "On the geometry of differential privacy", arXiv:0907.3754,
          section 4 (the distribution).
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264 (the reason to charge for arithmetic).
        - The margin: docs/mechanisms.md.

    See Also:
        reticent.noise.k_norm: the sampler.
    """
    return float(dimension) ** 3 * 2.0**-38


def _radii(rows: int, dimension: int, scale: float, sampler: Sampler) -> tuple[Integers, Booleans]:
    """Return sums of m + 1 geometric variables, and whether int64 has room for the operations on
    them. A sum is 0 where it has not.
    """
    parts = sampler.geometric((rows, dimension + 1), scale=scale)
    fits = (parts < _RADIUS_LIMIT // (dimension + 1)).all(axis=1)
    return np.where(fits, parts.sum(axis=1), 0), np.asarray(fits)


def _linf(rows: int, dimension: int, scale: float, sampler: Sampler) -> tuple[Integers, Booleans]:
    """Return one proposal per row and whether it is kept, exactly, in integers only.

    A sum of m + 1 geometric variables is K with weight C(K + m, m) q^K. Keeping it with probability
    prod_{i=1..m} (2K + 1) / (2 (K + i)) leaves the weight (2K + 1)^m q^K.
    """
    radius, fits = _radii(rows, dimension, scale, sampler)
    steps = radius[:, None] + np.arange(1, dimension + 1)
    kept = sampler.quotient_coins(2 * radius[:, None] + 1, 2 * steps) & fits
    side = np.broadcast_to(2 * radius[:, None] + 1, (rows, dimension))
    return sampler.uniform_integers(side) - radius[:, None], kept


def _l2(rows: int, dimension: int, scale: float, sampler: Sampler) -> tuple[Integers, Booleans]:
    """Return one proposal per row and whether it is kept.

    The number of integer points in a ball has no closed form, but its volume has. So draw T with
    weight T^m q^T, a point y uniform in the ball of radius T, and keep v = round(y) if ||v|| <= K =
    T - margin. The unit cube around such a v lies in the ball (margin > sqrt(m)/2 + 1), so v has
    probability 1/Volume, and (K, v) has weight q^K 1{||v|| <= K}.

    y lives on a lattice 2^F times finer, with T 2^F between 2^58 and 2^59, where every unit cube
    holds equally many points. ``_uniform_in_ball`` is uniform there up to a factor 1 + e, with e at
    most the sum over coordinates of (n^2 + n)/r. Here n is the number of coordinates still to come
    (below m) and r >= T 2^F sqrt((K - ||v|| + 1)/T) the radius left to them. The mean of e over K
    is below (m^3/3) sqrt(pi T / scale) / 2^58 <= m^3 2^-39 for scale >= 2^20 and T < 2^58.
    """
    margin = math.isqrt(dimension) + 2
    total, fits = _radii(rows, dimension, scale, sampler)
    steps = total[:, None] + np.arange(1, dimension + 1)
    # C(T + m, m) q^T, kept with probability prod T / (T + i), leaves T^m q^T.
    kept = sampler.quotient_coins(total[:, None], steps) & (total >= margin) & fits
    total = total[kept]
    shift = np.maximum(_FINE_BITS - np.frexp(total.astype(np.float64))[1], 0).astype(np.int64)
    fine = _uniform_in_ball(total << shift, dimension, sampler)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    vectors = np.zeros((rows, dimension), dtype=np.int64)
    vectors[kept] = (fine + half[:, None]) >> shift[:, None]
    kept[kept] = _within(vectors[kept], total - margin)
    return vectors, kept


def _within(vectors: Integers, radius: Integers) -> Booleans:
    """Return whether ||v||_2 <= radius, in exact integer arithmetic (Python integers where int64
    would overflow).
    """
    exact = object if radius.size and radius.max() >= 2**27 else np.int64
    squares = np.square(vectors.astype(exact)).sum(axis=1)
    return np.asarray(squares <= np.square(radius.astype(exact)), dtype=np.bool_)


def _uniform_in_ball(radius: Integers, dimension: int, sampler: Sampler) -> Integers:
    """Return integer points almost uniform in the l2 ball of each radius (up to 2**60), shape (n,
    dimension).

    One coordinate is drawn after the other. Given radius r and n coordinates to come, y uniform on
    -r .. r leaves them the radius s = sqrt(r^2 - y^2), and is kept with probability
    ((s + 1/2)/(r + 1/2))^n. A point then has probability prod (s_i + 1/2)^n_i / Z_{n_i}(r_i), where
    Z_n(r) = sum over y of (s + 1/2)^n = c_n (r + 1/2)^(n+1) (1 + e) and s_i = r_{i+1}. Numerators
    cancel against the next denominator *whatever* value of s was computed, and the rest is constant
    up to the factors 1 + e. With |s + 1/2 - sqrt(r^2 - y^2)| <= 1/2 + 2^-51 s and a unimodal
    summand, |e| <= n 2^-51 + (n^2 + n)/r. For n = 0 the count 2r + 1 is exact.
    """
    points = np.zeros((len(radius), dimension), dtype=np.int64)
    left = radius.copy()
    for coordinate in range(dimension):
        others = dimension - coordinate - 1
        pending = np.arange(len(radius))
        remaining = left.copy()
        while pending.size:
            r = left[pending]
            y = sampler.uniform_integers(2 * r + 1) - r
            # (r - y)(r + y) has no cancellation. The minimum guards the rounding of r * r at y = 0.
            s = np.minimum(np.sqrt((r - y).astype(np.float64) * (r + y)).astype(np.int64), r)
            kept = sampler.bernoulli(np.minimum(((s + 0.5) / (r + 0.5)) ** others, 1.0))
            points[pending[kept], coordinate] = y[kept]
            remaining[pending[kept]] = s[kept]
            pending = pending[~kept]
        left = remaining
    return points
