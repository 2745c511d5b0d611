from __future__ import annotations

import numpy as np
import pytest

from reticent.core import Box, Norm
from reticent.core.errors import InvalidInput


def test_clipping_never_moves_points_apart():
    rng = np.random.default_rng(0)
    box = Box.cube(3, 1.0)
    first, second = rng.normal(size=(2, 500, 3)) * 2
    for norm in Norm:
        assert (
            norm.of(box.clip(first) - box.clip(second)) <= norm.of(first - second) + 1e-15
        ).all()
    assert box.contains(box.clip(first)).all()


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0.0, 1.0], [1.0, 0.0], "box: lower > upper at coordinate 1"),
        ([0.0], [1.0, 2.0], "box: lower has shape (1,), upper (2,); expected the same"),
        ([np.nan], [1.0], "lower: contains NaN"),
        ([0.0], [np.inf], "upper: contains infinity"),
        ([[0.0]], [[1.0]], "lower: expected 1 axes"),
        ([], [], "lower: expected at least one value"),
        ([1j], [1.0], "lower: Complex data not supported"),
        (np.ma.array([0.0], mask=[True]), [1.0], "lower: contains masked values"),
    ],
)
def test_bad_boxes(lower, upper, message):
    with pytest.raises(InvalidInput) as caught:
        Box(lower, upper)
    assert str(caught.value).startswith(message)
