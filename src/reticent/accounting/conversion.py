"""From Rényi divergences to (epsilon, delta), rounded up."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import probability
from reticent.core.errors import InvalidParameter

_ROUNDING = 2e-15
"""More than the rounding of the few operations of a conversion, relative to the sum of their
magnitudes.
"""

_LEAST_ORDER = 1.01
"""The conversion of an order closer to 1 cancels, and is never the best one."""


def epsilon_of_rdp(
    orders: npt.ArrayLike, divergences: npt.ArrayLike, delta: float
) -> tuple[float, float]:
    """Return the smallest epsilon at ``delta`` that one of the orders proves, and that order.

    Args:
        orders: shape (k,), each above 1.
        divergences: shape (k,), each at least 0, infinite where nothing is known.
        delta: in [0, 1).

    Returns:
        Epsilon, at least 0 and infinite where no order reaches ``delta``, and the order.

    Raises:
        InvalidParameter: orders, divergences or delta out of their range.

    Edge cases: delta = 0 gives infinity unless a divergence is 0. Where 1 - exp(-divergence) <
    delta^2 epsilon is 0, because total variation is at most sqrt(1 - exp(-KL)).

    Example:
        >>> epsilon, order = epsilon_of_rdp([2.0, 8.0, 32.0], [0.01, 0.04, 0.16], 1e-5)
        >>> round(epsilon, 4), order
        (0.3878, 32.0)

    References:
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, proposition 12.
        - Bretagnolle and Huber (1979), "Estimation des densités: risque minimax",
          doi:10.1007/BF00535278, for epsilon = 0.

    See Also:
        reticent.accounting.ApproximateRdp: divergences up to a slack.
    """
    alphas, rdp = _checked(orders, divergences)
    delta = probability(delta, name="delta")
    if delta == 0:
        free = np.flatnonzero(rdp == 0)
        return (0.0, float(alphas[free[0]])) if free.size else (math.inf, float(alphas[-1]))
    shift, share = np.log1p(-1 / alphas), np.log(delta * alphas) / (alphas - 1)
    found = rdp + shift - share + _ROUNDING * (rdp - shift + np.abs(share))
    found[alphas <= _LEAST_ORDER] = math.inf
    found[delta**2 * (1 - _ROUNDING) + np.expm1(-rdp) > 0] = 0.0
    best = int(np.argmin(found))
    return max(0.0, float(found[best])), float(alphas[best])


def _checked(orders: npt.ArrayLike, divergences: npt.ArrayLike) -> tuple[Array, Array]:
    alphas, rdp = np.asarray(orders, dtype=np.float64), np.asarray(divergences, dtype=np.float64)
    if alphas.ndim != 1 or alphas.size == 0 or not np.all(alphas > 1):
        raise InvalidParameter("orders: expected at least one number, each above 1")
    if rdp.shape != alphas.shape or not np.all(rdp >= 0):
        raise InvalidParameter(
            f"divergences: expected {alphas.size} numbers of at least 0, got shape={rdp.shape}"
        )
    return alphas, rdp
