"""Points are integers in the ball, the same in every batch, and float32 squares their distances
exactly.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.core.errors import InvalidInput
from reticent.neighbours import POINT_RADIUS, PointGrid
from reticent.neighbours.exhaustive import Exhaustive
from reticent.neighbours.integer_points import check_points


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 12), st.floats(1e-6, 1e6), st.integers(0, 2**32 - 1))
def test_points_stay_in_the_ball_and_do_not_depend_on_their_batch(
    d: int, n: int, spread: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    grid = PointGrid.around(rng.normal(size=(5, d)))
    features = spread * rng.normal(size=(n, d))
    points = grid.points(features)
    assert (points == np.rint(points)).all()
    assert ((points.astype(np.int64) ** 2).sum(axis=1) <= POINT_RADIUS**2).all()
    for row in range(n):
        assert (grid.points(features[row : row + 1])[0] == points[row]).all()


def test_squared_distances_are_exact_at_the_ends_of_the_ball() -> None:
    rng = np.random.default_rng(0)
    points = []
    for d in (1, 3, 64, 324):
        directions = rng.normal(size=(50, d))
        directions *= POINT_RADIUS / np.linalg.norm(directions, axis=1, keepdims=True)
        points = np.trunc(np.concatenate([directions, -directions])).astype(np.int16)
        exact = ((points.astype(np.int64)[:, None] - points.astype(np.int64)[None]) ** 2).sum(
            axis=2
        )
        assert exact.max() > 0.98 * 2**24
        found = Exhaustive.of(points).nearest(points, len(points))
        assert (np.stack([squared for _, squared in found]) == exact).all()


@pytest.mark.parametrize("features", [[[0.0, 0.0]], [[5.0, 0.0]], [[5.0, 1.0], [5.0, 1.0]]])
def test_a_single_public_row_still_gives_a_scale(features: list[list[float]]) -> None:
    grid = PointGrid.around(features)
    assert np.isfinite(grid.per_unit)
    assert not grid.points(features).any()


@pytest.mark.parametrize("value", [1e200, 1e306, 1.7e308])
@pytest.mark.filterwarnings("error")
def test_any_finite_record_is_a_point(value: float) -> None:
    """A record whose features overflow on the way may not be refused: the refusal would tell
    that it is there.
    """
    grid = PointGrid.around([[-1e-3, 0.0], [1e-3, 0.0]])
    [far] = grid.points([[value, -value]])
    assert far.tolist() == grid.points([[1e6, -1e6]])[0].tolist()
    assert PointGrid(np.array([-1.7e308, 0.0]), 1.0).points([[value, 0.0]])[0].tolist() == [
        2047.0,
        0.0,
    ]


@pytest.mark.parametrize("d", [9, 100, 300, 1000])
def test_points_that_rounding_to_the_nearest_moves_out_of_the_ball_are_rounded_inwards(
    d: int,
) -> None:
    """Equal coordinates, at every length at which their rounded values would leave the ball."""
    grid = PointGrid.in_ball(np.zeros(d), 1.0)
    rows = np.linspace(0.9, 1.1, 400)[:, None] * np.full(d, 1 / np.sqrt(d))
    points = grid.points(rows).astype(np.int64)
    assert ((points**2).sum(axis=1) <= POINT_RADIUS**2).all()
    scaled = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None] * (POINT_RADIUS - 1)
    beyond = (np.rint(scaled) ** 2).sum(axis=1) > POINT_RADIUS**2
    assert beyond.any() == (d in (100, 1000))


@pytest.mark.parametrize("d", [2, 16, 300])
def test_rows_at_the_edge_of_the_ball_have_the_bits_of_rows_that_are_scaled(d: int) -> None:
    """Rows well inside are rounded alone, and all others are cut and scaled first."""
    rng = np.random.default_rng(d)
    grid = PointGrid.in_ball(np.zeros(d), 1.0)
    ways = rng.normal(size=(4000, d))
    ways *= (rng.uniform(0.998, 1.002, 4000) / np.linalg.norm(ways, axis=1))[:, None]
    rows = np.concatenate([ways, ways * rng.uniform(0.0, 2.0, (4000, 1))])
    np.testing.assert_array_equal(grid.points(rows), grid._block(rows).T)


@pytest.mark.parametrize("points", [[[0.5, 1.0]], [[2000.0, 2000.0]], [[0.0, 2049.0]]])
def test_points_that_no_grid_makes_are_refused(points: list[list[float]]) -> None:
    with pytest.raises(InvalidInput, match="integer points"):
        check_points(points, name="points")
