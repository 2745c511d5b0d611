"""Rényi divergences of elementary costs, each rounded up."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from reticent.accounting.discrete_gaussian import sampled_gaussian_rdp
from reticent.accounting.events import (
    Composed,
    Cost,
    GaussianCost,
    PoissonSampled,
    StatedCost,
    ZeroConcentratedCost,
)
from reticent.accounting.noisy_argmax import NoisyArgmaxDpEvent
from reticent.accounting.sampling import (
    LARGEST_FRACTION,
    SMALLEST_MULTIPLIER,
    between_integers,
    general_sampled_rdp,
    sampled_gaussian_rdp_between,
)
from reticent.accounting.screening import ScreeningDpEvent, screening_rdp
from reticent.core.arrays import Array
from reticent.core.errors import IncompatibleGuarantees

DEFAULT_ORDERS: tuple[float, ...] = (
    *(1 + tenths / 10 for tenths in range(1, 100)),
    *(float(order) for order in range(11, 64)),
    *(128.0, 256.0, 512.0, 1024.0),
)
"""Default Rényi orders of an accountant: those of dp-accounting, 1.1 to 1024."""

_ROUND_UP = 1.0 + 1e-12
"""More than the rounding of the closed forms, whose summands are all positive."""


@lru_cache(maxsize=1024)
def rdp_curve(cost: Cost, orders: tuple[float, ...]) -> Array:
    """Return the Rényi divergence of one elementary cost at ``orders``, shape (k,), read-only. A
    stated delta is left to the caller.

    - Gaussian and zCDP: a / (2 multiplier^2) and xi + rho a.
    - (epsilon, 0): the exact divergence of randomised response with two answers.
    - Gaussian noise on a Poisson sample: exact at integer orders, in between by quadrature with a
      proved error.
    - anything else, or several things, on one Poisson sample: the general bound.
    - screening bits and noisy labels: as in ``screening_rdp`` and ``noisy_argmax_rdp``, but a label
      is counted as its noisy votes.

    Args:
        cost: an elementary cost (``reticent.accounting.costs``).
        orders: each above 1.

    Raises:
        IncompatibleGuarantees: no formula for ``cost``.

    Example:
        >>> rdp_curve(GaussianCost(2.0), (2.0, 8.0)).round(6)
        array([0.25, 1.  ])

    References:
        - Mironov (2017), "Rényi differential privacy", arXiv:1702.07476, propositions 5
          and 7 (randomised response, Gaussian).
        - Mironov, Talwar and Zhang (2019), "Rényi differential privacy of the sampled Gaussian
          mechanism", arXiv:1908.10530 (sampled Gaussian noise).
        - Zhu and Wang (2019), "Poisson subsampled Rényi differential privacy", International
          Conference on Machine Learning (ICML), PMLR 97 (other sampled mechanisms).
    """
    curve = _ROUND_UP * _divergence(cost, np.asarray(orders, dtype=np.float64))
    curve.setflags(write=False)
    return curve


def _divergence(cost: Cost, orders: Array) -> Array:
    if isinstance(cost, GaussianCost):
        return orders / (2 * cost.noise_multiplier**2)
    if isinstance(cost, ZeroConcentratedCost):
        return cost.xi + cost.rho * orders
    if isinstance(cost, StatedCost):
        return _two_answers(cost.epsilon, orders)
    if isinstance(cost, ScreeningDpEvent):
        return screening_rdp(cost, orders, sampling_probability=1.0)
    if isinstance(cost, NoisyArgmaxDpEvent):
        return _votes(cost, orders, 1.0)
    if isinstance(cost, Composed):
        return np.asarray(
            sum((_divergence(part, orders) for part in cost.parts), np.zeros_like(orders))
        )
    if isinstance(cost, PoissonSampled):
        return _on_a_sample(cost.of, cost.sampling_probability, orders)
    raise IncompatibleGuarantees(f"no Rényi formula for {type(cost).__name__}; use PldAccountant")


def _on_a_sample(step: Cost, rate: float, orders: Array) -> Array:
    if isinstance(step, ScreeningDpEvent):
        return screening_rdp(step, orders, sampling_probability=rate)
    if isinstance(step, NoisyArgmaxDpEvent):
        return _votes(step, orders, rate)
    if isinstance(step, GaussianCost):
        found = _between(step.noise_multiplier, rate, orders)
        near = (orders != np.round(orders)) & (orders <= LARGEST_FRACTION)
        if step.noise_multiplier >= SMALLEST_MULTIPLIER and near.any():
            found[near] = sampled_gaussian_rdp_between(
                orders[near], noise_multiplier=step.noise_multiplier, sampling_probability=rate
            )
        return found
    return general_sampled_rdp(
        orders, lambda whole: _divergence(step, whole), sampling_probability=rate
    )


def _votes(label: NoisyArgmaxDpEvent, orders: Array, rate: float) -> Array:
    # The label's own smaller cost has a slack in delta, and only private_knn_total takes that off.
    # Between integer orders nothing but convexity is proved for discrete noise on a sample.
    return _between(label.sigma / math.sqrt(2), rate, orders)


def _between(multiplier: float, rate: float, orders: Array) -> Array:
    return between_integers(
        orders,
        lambda whole: sampled_gaussian_rdp(
            whole, noise_multiplier=multiplier, sampling_probability=rate
        ),
    )


def _two_answers(epsilon: float, orders: Array) -> Array:
    """Return the divergence of two distributions that exchange the probabilities of two answers,
    ``share`` and exp(``epsilon``) times as much.
    """
    log_share = -float(np.logaddexp(0.0, epsilon))
    # E - 1 = share exp(epsilon) (1 - exp(-a epsilon)) (exp((a - 1) epsilon) - 1).
    with np.errstate(under="ignore"):
        log_excess = (
            log_share
            + orders * epsilon
            + np.log(-np.expm1(-orders * epsilon))
            + np.log(-np.expm1(-(orders - 1) * epsilon))
        )
    return np.logaddexp(0.0, log_excess) / (orders - 1)
