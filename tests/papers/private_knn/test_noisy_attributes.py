"""Attributes by clipped votes: right with little noise, at the stated cost, with the stated
distribution.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from papers.private_knn.noisy_attributes import (
    VOTE_STEPS,
    NoisyAttributes,
    clipped_votes,
    weight_votes,
)
from reticent.core.errors import InvalidInput
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
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

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


def test_weights_add_up_and_nobody_counts_nothing() -> None:
    weights = np.array([[1, 2], [10, 20]])
    assert weight_votes(np.array([[0, 1, -1], [-1, -1, -1]]), weights).tolist() == [
        [11, 22],
        [0, 0],
    ]
    assert weight_votes(np.zeros((0, 3), dtype=np.int64), weights).shape == (0, 2)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 2**32 - 1))
def test_clipped_votes_keep_their_norms(attributes: int, tau: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.random((40, attributes)) < rng.random()
    votes = clipped_votes(bits, tau=tau)
    assert ((votes > 0) == bits).all()
    assert (votes <= VOTE_STEPS).all()
    assert (votes.sum(axis=1) <= tau * VOTE_STEPS).all()
    swaps = votes[:20] - votes[20:]
    assert (np.sqrt((swaps**2).sum(axis=1)) <= math.sqrt(2 * tau) * VOTE_STEPS).all()
    assert (np.abs(swaps).sum(axis=1) <= 2 * tau * VOTE_STEPS).all()
    # Against the paper's own formula, up to the rounding down to steps.
    owned = np.maximum(bits.sum(axis=1, keepdims=True), 1)
    assert np.abs(votes / VOTE_STEPS - bits * np.minimum(tau / owned, 1)).max() <= 1 / VOTE_STEPS


@pytest.mark.parametrize("attributes", [[[0, 2]], [[0.5, 1.0]], [0, 1], [["a"]]])
def test_attributes_are_zeros_and_ones(attributes: list) -> None:
    with pytest.raises(InvalidInput, match="attributes: expected zeros and ones"):
        clipped_votes(attributes, tau=1)
