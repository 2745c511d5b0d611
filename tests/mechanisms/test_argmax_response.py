"""Randomised response on the best label: the least wrong share that is private, exactly."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reticent.core import Neighborhood, Norm
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.grids.shares import WHOLE, factor_below
from reticent.mechanisms import ArgmaxResponse
from reticent.noise import AuditSampler

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")


def response(classes: int = 4, epsilon: float = 1.0) -> ArgmaxResponse:
    return ArgmaxResponse(classes=classes, epsilon=epsilon, adjacency=NEAR)


@settings(max_examples=300, deadline=None)
@given(classes=st.integers(2, 1000), epsilon=st.floats(1e-9, 60))
def test_wrong_share_is_the_least_private_one(classes, epsilon) -> None:
    wrong = response(classes, epsilon).wrong_share
    right = WHOLE - (classes - 1) * wrong
    factor = factor_below(epsilon)
    bound = Fraction(factor.numerator, 2**factor.shift)
    assert wrong >= 1
    assert right <= bound * wrong
    with mpmath.workdps(60):
        assert mpmath.mpf(right) / wrong <= mpmath.exp(mpmath.mpf(epsilon))
    if wrong > 1:
        assert right + classes - 1 > bound * (wrong - 1)


def test_probabilities_are_those_of_randomised_response() -> None:
    for epsilon in (0.5, 2.0, 10.0):
        found = response(10, epsilon).probabilities(np.eye(10)[:3])
        right = np.exp(epsilon) / (np.exp(epsilon) + 9)
        expected = np.where(np.eye(10)[:3] > 0, right, (1 - right) / 9)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_labels_have_the_stated_distribution() -> None:
    mechanism = response()
    logits = np.tile([0.0, 3.0, 1.0, 3.0], (40_000, 1))
    drawn = mechanism.release(logits, sampler=AuditSampler(1))
    counts = np.bincount(drawn, minlength=4)
    expected = 40_000 * mechanism.probabilities(logits[:1])[0]
    assert expected.argmax() == 1  # the first of two equal logits
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    wrong = expected * np.array([1.1, 1.0, 1.0, 1.0])
    assert stats.chisquare(counts, wrong * 40_000 / wrong.sum()).pvalue < 1e-3


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="classes=1"):
        response(1)
    with pytest.raises(InvalidParameter, match="epsilon"):
        response(epsilon=0.0)
    with pytest.raises(InvalidInput, match="NaN"):
        response().probabilities([[0.0, 0.0, 0.0, np.nan]])
    assert response().probabilities(np.zeros((0, 4))).shape == (0, 4)


def test_guarantee_and_event() -> None:
    mechanism = response(epsilon=2.0)
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.delta) == (2.0, 0.0)
    assert mechanism.event.guarantee == mechanism.guarantee
