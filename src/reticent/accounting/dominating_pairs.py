"""Privacy-loss distributions of Private-kNN steps, from the largest hockey-stick divergences of
the distributions that are drawn.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from reticent.accounting.screening import ScreeningDpEvent, screening_pairs
from reticent.core.arrays import Array
from reticent.core.checks import positive
from reticent.core.errors import InvalidParameter
from reticent.core.extras import require

_REACH = 12.0
"""Standard deviations of a difference of noises that are computed. The rest, below 1e-32, counts as
a certain disclosure.
"""

_SMOOTH = 4.0
"""From here on the difference of two discrete Gaussians is a discrete Gaussian in double
precision.
"""

LARGEST_SIGMA = 10_000.0
"""Wider distributions have losses far below any grid, and too many values to compute."""

_CELLS = 2**22


@lru_cache(maxsize=256)
def screening_loss_distribution(
    event: ScreeningDpEvent, *, sampling_probability: float, interval: float
) -> Any:
    """Return a privacy-loss distribution that dominates a screening bit for every pair of
    neighbouring counts, in both directions.

    The curve of the largest hockey-stick divergence over all pairs is that of one pair of
    distributions. That pair dominates each of them, so its compositions dominate theirs. It gains
    little over the Gaussian step that the bit post-processes, since for each loss some count has
    the threshold at just that loss. ``screening_rdp`` is the better bound of many bits.

    Args:
        event: the screening step.
        sampling_probability: rate of the Poisson sampling, in (0, 1].
        interval: width of the grid of losses.

    References:
        - Zhu, Dong and Wang (2022), "Optimal accounting of differential privacy via characteristic
          function", arXiv:2106.08567, proposition 8 (dominating pairs from suprema).
        - Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), "Connect the dots: tighter
          discrete approximations of privacy loss distributions", arXiv:2207.04380.
    """
    base, mixed = screening_pairs(event, sampling_probability=sampling_probability)
    remove = _connect_dots(np.exp(mixed), np.exp(base), interval, 0.0)
    return _both_ways(remove, _connect_dots(np.exp(base), np.exp(mixed), interval, 0.0))


@lru_cache(maxsize=256)
def votes_loss_distribution(sigma: float, *, sampling_probability: float, interval: float) -> Any:
    """Return the privacy-loss distribution of one vote that moves between two classes, each with
    discrete Gaussian noise.

    The likelihood ratio depends on the votes through the difference of the two noises alone. A vote
    that only comes, or only goes, is post-processing of one that moves.

    Args:
        sigma: parameter of the noise of each vote.
        sampling_probability: rate of the Poisson sampling, in (0, 1].
        interval: width of the grid of losses.

    Raises:
        InvalidParameter: sigma above ``LARGEST_SIGMA``.
    """
    spread = math.sqrt(2) * positive(sigma, name="sigma")
    if sigma > LARGEST_SIGMA:
        raise InvalidParameter(
            f"sigma={sigma!r}: expected at most {LARGEST_SIGMA:g} votes; use Rényi divergences"
        )
    reach = math.ceil(_REACH * spread) + 2
    if sigma < _SMOOTH:
        distribution = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
        difference = np.convolve(distribution, distribution, mode="same")
    else:
        # The sum over x of exp(-(x - s/2)**2 / sigma**2) does not depend on s, to a relative
        # exp(-pi**2 sigma**2).
        difference = np.exp(-0.5 * (np.arange(-reach, reach + 1) / spread) ** 2)
    difference /= difference.sum()
    base, moved = difference[2:], difference[:-2]
    mixed = (1 - sampling_probability) * base + sampling_probability * moved
    outside = 1e-30 + 2 * float(difference[:2].sum() + difference[-2:].sum())
    columns = [distribution[:, None] for distribution in (mixed, base)]
    remove = _connect_dots(columns[0], columns[1], interval, outside)
    return _both_ways(remove, _connect_dots(columns[1], columns[0], interval, outside))


def _both_ways(remove: Any, add: Any) -> Any:
    return require(
        "dp_accounting.pld.privacy_loss_distribution", extra="accounting"
    ).PrivacyLossDistribution(remove, add)


def _connect_dots(upper: Array, lower: Array, interval: float, outside: float) -> Any:
    """Return a pessimistic distribution on the grid, from the largest hockey-stick divergence over
    the columns plus ``outside``.
    """
    losses = np.log(upper / lower)
    first, last = math.floor(losses.min() / interval), math.ceil(losses.max() / interval)
    growth = np.exp(interval * np.arange(first, last + 1))
    deltas = np.empty(growth.size)
    step = max(1, _CELLS // upper.size)
    for start in range(0, growth.size, step):
        part = growth[start : start + step, None, None]
        deltas[start : start + step] = np.maximum(upper - part * lower, 0.0).sum(axis=1).max(axis=1)
    deltas = np.minimum(np.maximum.accumulate(deltas[::-1])[::-1] + outside, 1.0)
    pld_pmf = require("dp_accounting.pld.pld_pmf", extra="accounting")
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, first, last, deltas)
