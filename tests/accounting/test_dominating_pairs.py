from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.accounting.dominating_pairs import (
    screening_loss_distribution,
    votes_loss_distribution,
)
from reticent.accounting.screening import ScreeningDpEvent, screening_pairs


@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_screening_dominates_every_pair_of_counts(rate: float) -> None:
    step = ScreeningDpEvent(0, 12, 8, 4.0, discrete=True)
    dominating = screening_loss_distribution(step, sampling_probability=rate, interval=1e-3)
    base, mixed = (
        np.exp(distribution) for distribution in screening_pairs(step, sampling_probability=rate)
    )
    for epsilon in (0.0, 0.01, 0.05, 0.2):
        deltas = np.maximum(
            np.maximum(mixed - math.exp(epsilon) * base, 0).sum(axis=0),
            np.maximum(base - math.exp(epsilon) * mixed, 0).sum(axis=0),
        )
        bound = dominating.get_delta_for_epsilon(epsilon)
        assert deltas.max() <= bound * (1 + 1e-9)
        assert deltas.max() == pytest.approx(bound, rel=0.05, abs=1e-4)


@pytest.mark.parametrize(
    ("sigma", "rate", "count"), [(10.0, 1.0, 5), (25.0, 0.15, 735), (3.0, 0.05, 200)]
)
def test_votes_against_the_continuous_distribution(sigma: float, rate: float, count: int) -> None:
    """dp-accounting's sampled Gaussian is an oracle to within the spacing of the integers."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    discrete = votes_loss_distribution(
        sigma, sampling_probability=rate, interval=1e-4
    ).self_compose(count)
    continuous = pld.from_gaussian_mechanism(
        sigma / math.sqrt(2), sampling_prob=rate, value_discretization_interval=1e-4
    )
    expected = continuous.self_compose(count).get_epsilon_for_delta(1e-5)
    assert discrete.get_epsilon_for_delta(1e-5) == pytest.approx(expected, abs=2e-3 + 0.01 / sigma)
