from __future__ import annotations

import numpy as np
import pytest

from reticent.core.checks import count, finite_array, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([[1.0, np.nan]], {}, "x: contains NaN (1 of 2 values are not finite)"),
        ([np.inf, -np.inf], {}, "x: contains infinity (2 of 2"),
        ([1.0], {"ndim": 2}, "x: expected 2 axes, got shape=(1,)"),
        ([[1.0]], {"columns": 3}, "x: expected 3 features in the last axis, got shape=(1, 1)"),
        (3.0, {"columns": 1}, "x: expected 1 features"),
        ([], {}, "x: expected at least one value"),
        (["a"], {}, "x: expected real numbers, got dtype="),
        ([1j], {}, "x: Complex data not supported; expected real numbers"),
        ([None], {}, "x: contains NaN (1 of 1"),
        ([[1.0], [1.0, 2.0]], {}, "x: expected an array of numbers"),
        ([10**400], {}, "x: expected real numbers, got entries that are not numbers, or beyond"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), {}, "x: contains masked values"),
    ],
)
def test_bad_arrays(values, options, message):
    with pytest.raises(InvalidInput) as caught:
        finite_array(values, name="x", **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "value", [0, -1, float("nan"), float("inf"), "1", None, True, 1j, np.bool_(True)]
)
def test_positive_refuses(value):
    with pytest.raises(InvalidParameter, match="epsilon="):
        positive(value, name="epsilon")


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, float("nan"), "0.1", True])
def test_probability_refuses(value):
    with pytest.raises(InvalidParameter, match="delta="):
        probability(value, name="delta")


@pytest.mark.parametrize("value", [0, -3, 2.0, "2", True, np.bool_(True), None, float("nan")])
def test_count_refuses(value):
    with pytest.raises(InvalidParameter, match="expected an integer of at least 1"):
        count(value, name="n")
