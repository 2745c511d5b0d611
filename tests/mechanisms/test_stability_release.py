"""Stability release: levels have the two properties that the response needs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.core import Neighborhood, Norm
from reticent.mechanisms import StabilityRelease
from reticent.mechanisms.label_mechanism import gaps_to_top
from reticent.noise import SecureSampler, SeededSampler

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")


def stability(**changes) -> StabilityRelease:
    return StabilityRelease(
        **{"classes": 3, "sensitivity": 1.0, "epsilon": 1.0, "adjacency": NEAR, **changes}
    )


coordinates = st.one_of(st.floats(-4, 4), st.integers(-4, 4).map(float))


@settings(max_examples=200)
@given(
    st.lists(coordinates, min_size=3, max_size=3),
    st.lists(st.sampled_from([0.0, 1.0, 0.5]) | st.floats(0, 1), min_size=3, max_size=3),
    st.floats(-3, 3),
)
def test_levels_move_by_one_and_vanish_where_labels_differ(logits, change, offset) -> None:
    mechanism = stability()
    pair = np.array([logits, np.array(logits) + change + offset])
    levels = mechanism.levels(pair)
    labels = gaps_to_top(pair, classes=3, grid=mechanism.grid).argmin(axis=1)
    assert abs(int(levels[0]) - int(levels[1])) <= 1
    if labels[0] != labels[1]:
        assert levels.tolist() == [0, 0]


def test_probabilities_are_those_of_the_response() -> None:
    mechanism = stability(epsilon=2.0)
    p = mechanism.probabilities([[0.0, 3.5, 0.0], [0.1, 0.0, 0.0]])
    assert p.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert p[0, 1] == mechanism.response.right_probabilities[3]
    assert p[1, 0] == mechanism.response.right_probabilities[0]


def test_labels_follow_the_probabilities() -> None:
    mechanism = stability(epsilon=1.5)
    logits = np.array([[0.0, 1.5, 0.3]])
    labels = mechanism.release(np.repeat(logits, 50_000, axis=0), sampler=SeededSampler(2))
    assert np.bincount(labels, minlength=3) / 50_000 == pytest.approx(
        mechanism.probabilities(logits)[0], abs=0.01
    )


def test_far_margins_are_certain_and_ties_are_not() -> None:
    mechanism = stability()
    assert (
        mechanism.release(np.tile([0.0, 0.0, 500.0], (1000, 1)), sampler=SecureSampler()) == 2
    ).all()
    assert mechanism.levels([[0.0, 0.0, 0.0]]).tolist() == [0]
