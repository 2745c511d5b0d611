"""The table of derivatives along directions gives what the chain of interval arrays gives, bit
for bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.core import Box, Norm
from reticent.lipschitz import EnumerationBound
from reticent.lipschitz.direction_table import DirectionTable
from reticent.networks import affine_chain

OUTPUTS = [("l2", 3), ("l2", 1), ("l1", 13)]  # l1 with more than 12 outputs adds up functionals


def bounds(
    seed: int, output: str, outputs: int, norm: str, hidden: int = 7
) -> tuple[EnumerationBound, EnumerationBound]:
    """One network's bound by its table, and by the arrays that the table stands for."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-3, 4)
    first = rng.normal(size=(hidden, 4)) * np.where(rng.random((hidden, 1)) < 0.2, 1e-6, scale)
    last = rng.normal(size=(outputs, hidden))
    last[:, rng.integers(hidden)] = 0.0
    network = affine_chain([first, last], [scale * rng.normal(size=hidden), np.zeros(outputs)])
    both = [
        EnumerationBound(
            network, domain=Box.cube(4, 2.0), input_norm=Norm(norm), output=Norm(output)
        )
        for _ in range(2)
    ]
    assert isinstance(both[0]._table, DirectionTable)
    both[1]._table = None
    return both[0], both[1]


@pytest.mark.parametrize(("output", "outputs"), OUTPUTS)
@pytest.mark.parametrize("norm", ["linf", "l1"])
@given(seed=st.integers(0, 2**32 - 1))
def test_bounds_and_answers_are_those_of_the_arrays(output, outputs, norm, seed):
    table, arrays = bounds(seed, output, outputs, norm)
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2.5, 2.5, size=(9, 4))
    radii = np.array([0.0, 1e-6, 0.03, 0.1, 0.3, 0.7, 1.5, 4.0, np.inf])
    expected = arrays.bound(points, radii)
    assert np.array_equal(table.bound(points, radii), expected)
    assert np.array_equal(
        np.concatenate([table.bound(points[[i]], radii[[i]]) for i in range(9)]), expected
    )
    region = table.region(table.domain.clip(points), radii)
    for limit in (
        *expected,
        np.nextafter(expected[4], 0),
        0.5 * expected[4],
    ):  # a bound is at most itself
        assert np.array_equal(table.at_most(region, limit), expected <= limit)


def test_sums_stay_exact_in_float64():
    table, _ = bounds(1, "l2", 5, "linf", hidden=40)
    for center, spread in zip(table._table.centers, table._table.spreads, strict=True):
        for part in (center, spread):
            assert np.array_equal(part, np.round(part))
        on, unstable = np.split(np.abs(center) + spread, 2)
        assert 2 * np.maximum(on, unstable).sum(axis=0).max() < 2.0**53
