"""Attributes by clipped votes: right with little noise, at the stated cost, with the stated
distribution.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy import stats

from reticent.core.errors import InvalidInput
from reticent.mechanisms import NoisyAttributes
from reticent.noise import SecureSampler, SeededSampler


def _attributes(**changes: object) -> NoisyAttributes:
    settings = {
        "attributes": 2,
        "neighbours": 10,
        "tau": 2,
        "sigma": 4.0,
        "sampling_probability": 0.1,
        "delta": 1e-5,
        "steps": 256,
        **changes,
    }
    return NoisyAttributes(**settings)


def test_one_answer_costs_a_sampled_gaussian_of_sensitivity_sqrt_two_tau() -> None:
    mechanism = _attributes(attributes=6)
    assert _attributes(attributes=3).sensitivity == pytest.approx(math.sqrt(3))
    assert mechanism.noise_multiplier == pytest.approx(4.0 / math.sqrt(4))
    library = RdpAccountant(orders=range(2, 100)).compose(
        PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0))
    )
    assert mechanism.guarantee.epsilon == pytest.approx(library.get_epsilon(1e-5), rel=0.02)


def test_half_of_the_neighbours_decide() -> None:
    votes = np.array([[6 * 256, 4 * 256], [5 * 256, 0]])
    assert _attributes(sigma=1e-3).release(votes, sampler=SecureSampler()).tolist() == [
        [True, False],
        [True, False],
    ]


# False-alarm rate 1e-6; seeded.
def test_the_noise_is_in_whole_votes() -> None:
    runs = 50_000
    on = int(
        _attributes()
        .release(np.tile([[9 * 256, 0]], (runs, 1)), sampler=SeededSampler(6))[:, 0]
        .sum()
    )
    assert stats.binomtest(on, runs, stats.norm.cdf(1.0)).pvalue > 1e-6
    assert stats.binomtest(on, runs, stats.norm.cdf(2.0)).pvalue < 1e-6


def test_more_than_tau_votes_of_every_neighbour_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at most tau"):
        _attributes(tau=1).release([[6 * 256, 5 * 256]], sampler=SecureSampler())
