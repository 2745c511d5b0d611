"""Gaps to the top: differences survive rounding, the cap, and any common shift of all logits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.core import Neighborhood, Norm
from reticent.mechanisms import NoisyMaxRelease, SoftmaxRelease, StabilityRelease
from reticent.mechanisms.label_mechanism import ROUNDING_STEPS, gaps_to_top
from reticent.noise import Grid

finite = st.floats(allow_nan=False, allow_infinity=False)


def spread(change: list) -> Fraction:
    return max(change) - min(change)


@given(
    st.lists(finite, min_size=3, max_size=3),
    st.lists(finite, min_size=3, max_size=3),
    st.integers(-40, 40),
)
def test_no_two_gaps_drift_apart_by_more_than_the_logits_and_the_rounding(
    first, second, exponent
) -> None:
    grid = Grid(exponent)
    gaps = gaps_to_top([first, second], classes=3, grid=grid).tolist()
    allowed = spread(
        [Fraction(a) - Fraction(b) for a, b in zip(first, second, strict=True)]
    ) / Fraction(grid.step)
    assert spread([a - b for a, b in zip(*gaps, strict=True)]) <= allowed + Fraction(ROUNDING_STEPS)


@pytest.mark.parametrize("build", [SoftmaxRelease, StabilityRelease, NoisyMaxRelease])
def test_a_common_shift_of_all_logits_changes_nothing(build) -> None:
    # A clip of single logits at 2^60 steps would squeeze their differences out here.
    near = Neighborhood(Norm.LINF, 0.5, "embedding")
    mechanism = build(classes=3, sensitivity=1e-8, epsilon=1.0, adjacency=near)
    logits = np.array([[0.0, 1.0, 3.0]]) * 2.0**-26
    far = logits + 2.0**26
    assert mechanism.probabilities(far) == pytest.approx(mechanism.probabilities(logits), rel=1e-12)
