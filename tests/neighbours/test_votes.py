"""Votes are counts, and clipped vote vectors keep their promised norms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.core.errors import InvalidInput
from reticent.neighbours import VOTE_STEPS, clipped_votes, label_votes, weight_votes


def test_votes_are_counts_of_labels() -> None:
    rng = np.random.default_rng(0)
    labels, chosen = rng.integers(0, 5, size=30), rng.integers(-1, 30, size=(8, 12))
    votes = label_votes(chosen, labels, classes=5)
    for row in range(8):
        assert votes[row].tolist() == [
            sum(labels[place] == c for place in chosen[row] if place >= 0) for c in range(5)
        ]


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
