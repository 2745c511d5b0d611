"""Softmax release: its distribution, its privacy over all spread changes, its arithmetic."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reticent.core import Neighborhood, Norm
from reticent.mechanisms import SoftmaxRelease
from reticent.mechanisms.label_mechanism import gaps_to_top
from reticent.noise import SeededSampler

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")


def softmax(**changes) -> SoftmaxRelease:
    return SoftmaxRelease(
        **{"classes": 4, "sensitivity": 1.0, "epsilon": 1.0, "adjacency": NEAR, **changes}
    )


@settings(max_examples=150)
@given(
    st.lists(st.floats(-100, 100), min_size=4, max_size=4),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.floats(-5, 5),
    st.sampled_from([0.1, 1.0, 8.0, 300.0]),
)
def test_loss_is_at_most_epsilon(logits, change, offset, epsilon) -> None:
    mechanism = softmax(epsilon=epsilon)
    first = np.array([logits])
    second = first + np.array([change]) + offset
    ratio = np.log(mechanism.probabilities(first)) - np.log(mechanism.probabilities(second))
    assert np.abs(ratio).max() <= epsilon + 1e-12


def test_weights_are_exact_to_the_charged_error() -> None:
    mechanism = softmax(epsilon=7.0, classes=5)
    logits = np.array([[0.0, -0.3, 2.0, -7.0, 1.9999]])
    with mpmath.workdps(40):
        steps = [-int(v) for v in gaps_to_top(logits, classes=5, grid=mechanism.grid)[0]]
        exact = [
            mpmath.exp(-(max(steps) - v) / mpmath.mpf(mechanism._steps_temperature)) for v in steps
        ]
        exact = [mpmath.mpf(v) / sum(exact) for v in exact]
        for ours, truth in zip(mechanism.probabilities(logits)[0], exact, strict=True):
            assert abs(mpmath.mpf(float(ours)) / truth - 1) < 2.0**-43


def test_labels_follow_the_softmax() -> None:
    mechanism = softmax(epsilon=2.0)
    logits = np.array([0.5, 0.0, -0.5, 0.2])
    labels = mechanism.release(np.tile(logits, (100_000, 1)), sampler=SeededSampler(1))
    counts = np.bincount(labels, minlength=4)
    for factor, fits in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        distribution = np.exp(2.0 * factor * logits)
        assert (
            bool(stats.chisquare(counts, 100_000 * distribution / distribution.sum()).pvalue > 1e-6)
            is fits
        )


def test_extreme_settings_do_not_overflow() -> None:
    for epsilon in (1e-9, 1e6):
        p = softmax(epsilon=epsilon).probabilities([[1e300, -1e300, 0.0, 5.0]])
        assert p.sum() == pytest.approx(1.0)
        assert (p > 0).all()
