"""Rényi divergences of mechanisms on a Poisson sample of the records, under the addition or removal
of one record.

All functions bound E_Q[(M/Q)^a] - 1, M = (1 - rate) Q + rate P, in place of E itself. Every summand
is positive, so the tiny divergences of one step keep their digits, and rounding has a proved share
in the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

from reticent.core.arrays import Array

SMALLEST_MULTIPLIER = 0.05
LARGEST_FRACTION = 1000.0
"""Beyond these, quadrature needs too many points. Chords between integer orders suffice there,
where divergences are too large to matter.
"""

_EXPONENT, _QUADRATURE_ERROR = 100.0, -85.0
"""Quadrature errs by at most a few thousand times exp(-100) of the moment, and exp(-85) of it is
added.
"""

_ROUNDING = 1e-10
"""Relative error of quadrature's summands, more than three digits above the error measured against
50 digits.
"""

_ULPS = 2e-15
"""Error of a logarithm of a summand, relative to the sum of its parts' magnitudes."""

_SERIES = (13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3)


def between_integers(orders: Array, at_integers: Callable[[Array], Array]) -> Array:
    """Return a bound at any order above 1 from bounds at integer orders of at least 2, since
    (a - 1) D_a is convex and 0 at 1.

    Args:
        orders: shape (k,), each above 1.
        at_integers: function from sorted integer orders to bounds on D_a, shape (j,).

    Returns:
        Shape (k,): the bound itself at an integer, the chord of (a - 1) D_a elsewhere.

    Example:
        >>> between_integers(np.array([1.5, 2.0, 2.5]), lambda whole: whole / 8)
        array([0.25      , 0.25      , 0.33333333])
    """
    whole = np.unique(np.concatenate([np.floor(orders), np.ceil(orders), [2.0]]))
    whole = whole[whole >= 2]
    curve = at_integers(whole)
    moments = np.interp(
        orders, np.concatenate([[1.0], whole]), np.concatenate([[0.0], (whole - 1) * curve])
    )
    found = moments / (orders - 1)
    integer = orders == np.round(orders)
    found[integer] = curve[np.searchsorted(whole, orders[integer])]
    return np.asarray(found)


def general_sampled_rdp(
    orders: Array,
    at_integers: Callable[[Array], Array],
    *,
    sampling_probability: float,
) -> Array:
    """Return the Rényi divergence, in both directions, of any mechanism on a Poisson sample.

    Args:
        orders: shape (k,), each above 1.
        at_integers: function from integer orders to the mechanism's own Rényi divergence, shape
            (j,).
        sampling_probability: in (0, 1).

    Returns:
        Shape (k,).

    References:
        - Zhu and Wang (2019), "Poisson subsampled Rényi differential privacy", International
          Conference on Machine Learning (ICML), PMLR 97, theorem 6 (any mechanism).
    """
    if orders.size == 0:
        return np.empty(0)
    powers = np.arange(2.0, max(2.0, math.ceil(orders.max())) + 1)
    log_moments = (powers - 1) * at_integers(powers)
    log_moments[1:] += math.log(3.0)
    with np.errstate(divide="ignore"):
        log_excess = log_moments + np.log(-np.expm1(-log_moments))
    return between_integers(
        orders,
        lambda whole: np.array(
            [binomial_divergence(int(a), sampling_probability, log_excess) for a in whole]
        ),
    )


def binomial_divergence(order: int, rate: float, log_excess: Array) -> float:
    """Return log(1 + sum over j = 2 .. order of C(order, j) (1 - rate)^(order - j) rate^j x_j) /
    (order - 1), rounded up.

    Args:
        order: at least 2.
        rate: in (0, 1).
        log_excess: log x_j for j = 2, 3, ..., at least order - 1 of them. x_j is the moment
            E_Q[(P/Q)^j] less 1.
    """
    # The terms j = 0 and 1 have mean-one ratios and cancel exactly against the binomial sum of 1.
    j = np.arange(2, order + 1, dtype=np.float64)
    parts = (
        np.full(j.size, special.gammaln(order + 1)),
        -special.gammaln(j + 1),
        -special.gammaln(order - j + 1),
        (order - j) * math.log1p(-rate),
        j * math.log(rate),
        log_excess[: j.size],
    )
    finite = np.isfinite(parts[-1])
    error = _ULPS * (sum(np.abs(part) for part in parts) + j.size)
    log_terms = np.where(finite, sum(parts) + error, log_excess[: j.size])
    return softplus(log_sum(log_terms)) / (order - 1)


def sampled_gaussian_rdp_between(
    orders: Array, *, noise_multiplier: float, sampling_probability: float
) -> Array:
    """Return the Rényi divergence, in both directions, of continuous Gaussian noise on a Poisson
    sample, at orders that are not integers.

    It applies the trapezoidal rule to E_Q[(M/Q)^a - 1 - a (M/Q - 1)], Q = N(0, s^2), P = N(1, s^2).
    The integrand is positive and analytic for |Im x| < pi s^2. There |M/Q| is at most its value at
    Re x, so on the line Im x = y the integrand is at most exp(y^2 / (2 s^2)) times that of Re x. A
    step h then errs by at most 2 exp(y^2 / (2 s^2)) / (exp(2 pi y / h) - 1) times
    E_Q[(M/Q)^a] + 1 + 2 a. The part K s below 0 or above a is at most 2^(a + 1) exp(-K^2 / 2) times
    E_Q[(M/Q)^a], because (x + y)^a <= 2^(a - 1) (x^a + y^a). Both shares are added.

    Args:
        orders: shape (k,), each above 1 and at most ``LARGEST_FRACTION``.
        noise_multiplier: s, at least ``SMALLEST_MULTIPLIER``.
        sampling_probability: in (0, 1).

    Returns:
        Shape (k,).

    Example:
        >>> sampled_gaussian_rdp_between(
        ...     np.array([7.5, 8.5]), noise_multiplier=1.0, sampling_probability=0.01
        ... )
        array([0.00079..., 0.00108...])

    References:
        - Trefethen and Weideman (2014), "The exponentially convergent trapezoidal rule",
          doi:10.1137/130932132, theorem 5.1 (the trapezoidal rule).
        - Mironov, Talwar and Zhang (2019), "Rényi differential privacy of the sampled Gaussian
          mechanism", arXiv:1908.10530, theorem 5.
    """
    return np.array(
        [_fraction(float(order), noise_multiplier, sampling_probability) for order in orders]
    )


@lru_cache(maxsize=65536)
def _fraction(order: float, multiplier: float, rate: float) -> float:
    variance = multiplier**2
    step = 2 * math.pi**2 * variance / (_EXPONENT + 0.5 * math.pi**2 * variance)
    if step > 2:
        step = math.pi * multiplier * math.sqrt(2 / _EXPONENT)
    reach = multiplier * math.sqrt(2 * (_EXPONENT + order * math.log(2)))
    x = np.asarray(
        step * np.arange(math.floor(-reach / step), math.ceil((order + reach) / step) + 1),
        dtype=np.float64,
    )
    log_distribution = (
        -0.5 * x**2 / variance - 0.5 * math.log(2 * math.pi * variance) + math.log(step)
    )
    shift = (2 * x - 1) / (2 * variance)
    log_excess = (
        log_sum(log_distribution + _log_moment_excess(order, _log_ratio(shift, rate))) + _ROUNDING
    )
    return softplus(np.logaddexp(log_excess, softplus(log_excess) + _QUADRATURE_ERROR)) / (
        order - 1
    )


def _log_ratio(shift: Array, rate: float) -> Array:
    """Return log(1 - rate + rate exp(shift)), near 0 without cancellation."""
    growth = rate * np.expm1(np.minimum(shift, 1.0))
    near = (shift < 1.0) & (growth > -0.5)
    return np.where(
        near,
        np.log1p(np.maximum(growth, -0.5)),
        np.logaddexp(math.log1p(-rate), math.log(rate) + shift),
    )


def _log_moment_excess(order: float, log_ratio: Array) -> Array:
    """Return log(r^order - 1 - order (r - 1)) of ratios r, whose argument is above 0 wherever r is
    not 1.
    """
    power = order * log_ratio
    near = np.minimum(power, 1.0)
    with np.errstate(divide="ignore"):
        plain = np.log(np.maximum(exp_excess(near) - order * exp_excess(near / order), 0.0))
    far = np.maximum(power, 1.0)
    return np.where(
        power < 1.0,
        plain,
        far + np.log1p(-np.exp(-far) - order * (np.exp(far / order - far) - np.exp(-far))),
    )


def exp_excess(x: Array) -> Array:
    """Return exp(x) - 1 - x, never negative, to full relative accuracy. It is infinite where it
    overflows.

    Example:
        >>> exp_excess(np.array([1e-8, 1.0]))
        array([5.00000...e-17, 7.18281...e-01])
    """
    inner = np.clip(x, -0.1, 0.1)
    series = np.ones_like(inner)
    for degree in _SERIES:
        series = 1.0 + inner / degree * series
    with np.errstate(over="ignore"):
        return np.where(np.abs(x) < 0.1, 0.5 * inner * inner * series, np.expm1(x) - x)


def log_sum(log_terms: Array) -> float:
    """Return the logarithm of the sum of exp(``log_terms``), to a few ulps of the sum. It is -inf
    where every term is.
    """
    largest = float(log_terms.max())
    if not math.isfinite(largest):
        return largest
    return largest + math.log(float(np.exp(log_terms - largest).sum()))


def softplus(x: float) -> float:
    """Return log(1 + exp(x))."""
    return float(np.logaddexp(0.0, x))
