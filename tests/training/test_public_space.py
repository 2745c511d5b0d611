"""The public space: a record's point from that record and public rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.training import public_space
from reticent.training.public_space import (
    LENGTH,
    REACH,
    UNIT,
    PublicSpace,
    directions_of,
)

PUBLIC = np.random.default_rng(0).normal(size=(200, 5)) * [5.0, 3.0, 1.0, 0.1, 1e-3]


def around(**changes: object) -> PublicSpace:
    settings = {"components": None, "whitening": 0.0, "lower_upper": None, "alike": True}
    return PublicSpace.around(PUBLIC, **{**settings, **changes})  # type: ignore[arg-type]


def test_points_are_principal_components_on_a_grid() -> None:
    points = around(components=3).points(PUBLIC) / UNIT
    centred = PUBLIC - PUBLIC.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ directions[:3].T
    expected /= np.sqrt(np.square(expected).sum(axis=1).mean())
    assert np.abs(np.abs(points) - np.abs(expected)).max() < 1e-3


def test_a_point_is_the_same_alone_in_any_order_and_beside_others() -> None:
    space = around(whitening=0.5)
    rows = np.random.default_rng(1).normal(size=(9000, 5)) * 3
    together = space.points(rows)
    assert np.array_equal(together[::-1], space.points(rows[::-1]))
    assert np.array_equal(together[:50], np.concatenate([space.points(r[None]) for r in rows[:50]]))


def test_what_is_multiplied_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding at the end would hide a product that depends on the batch, most of the time."""
    rows = np.random.default_rng(4).normal(size=(50, 9))
    space = PublicSpace.around(rows, components=4, whitening=0.5, lower_upper=None, alike=True)
    honest, seen = public_space.exact_product, []

    def checked(left: Any, right: Any, *, bound: float) -> Any:
        seen.append(np.array_equal(left, np.rint(left)) and np.array_equal(right, np.rint(right)))
        assert (np.abs(left) @ np.abs(right)).max() <= bound
        return honest(left, right, bound=bound)

    monkeypatch.setattr(public_space, "exact_product", checked)
    space.points(np.concatenate([rows, 1e9 * rows]))
    assert seen
    assert all(seen)


def test_far_rows_are_cut_to_public_numbers() -> None:
    rows = np.array([[1e308, -1e308, 1e308, 0.0, 1e300]])
    points = around(whitening=1.0).points(rows)
    assert np.isfinite(points).all()
    assert np.abs(points).max() <= REACH
    directions = directions_of(points, intercept=0.3)
    assert np.linalg.norm(directions) <= LENGTH


def test_a_range_in_place_of_rows() -> None:
    space = PublicSpace.of_range(np.zeros(3), np.array([1.0, 2.0, 4.0]))
    assert space.points(np.array([[0.5, 1.0, 2.0]])).tolist() == [[0, 0, 0]]
    corner = space.points(np.array([[1.0, 2.0, 4.0]]))
    assert np.array_equal(corner, space.points(np.array([[9.0, 9.0, 9.0]])))
    assert np.ptp(corner) == 0
