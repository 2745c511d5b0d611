"""Weights against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from reticent.neighbours import LEAST_WEIGHT, WEIGHT_STEPS, RadiusKernel


def _expected(kernel: RadiusKernel, squared: int) -> int:
    inner, outer = kernel.squared_inner, kernel.squared_radius
    if squared >= outer:
        return 0
    if kernel.power == 0:
        return WEIGHT_STEPS
    share = min(Fraction(1), Fraction(outer - squared, outer - inner))
    steps = int(share * WEIGHT_STEPS)
    if kernel.power == 2:
        steps = steps * steps // WEIGHT_STEPS
    return steps if steps >= LEAST_WEIGHT else 0


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("ends", [(0, 1), (3, 50), (0, 100), (10_000, 2**24)])
def test_weights_are_the_stated_integers(power: int, ends: tuple[int, int]) -> None:
    kernel = RadiusKernel(squared_inner=ends[0], squared_radius=ends[1], power=power)
    squared = np.unique(
        np.concatenate([np.linspace(0, 1.2 * ends[1], 400).astype(np.int64), np.array(ends)])
    )
    found = kernel.weights(squared)
    assert found.tolist() == [_expected(kernel, int(one)) for one in squared]
    assert (np.diff(found) <= 0).all()
    assert set(found[found > 0] >= LEAST_WEIGHT) <= {True}
    assert found[0] == WEIGHT_STEPS
