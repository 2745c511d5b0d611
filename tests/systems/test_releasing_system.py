"""What every releasing system does alike: who may be asked what, and how labels are named."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from reticent.core.errors import InvalidInput
from reticent.systems.releasing_system import class_names, inputs_as_fitted


@pytest.mark.parametrize(
    ("shape", "expected", "fits"),
    [
        ((2, 3), (2, 3), True),
        ((6,), (2, 3), True),
        ((2, 3), (6,), True),
        ((3, 2), (2, 3), False),
        ((1, 2, 3), (2, 3), False),
    ],
)
def test_inputs_have_the_shape_of_fit_or_are_flat(
    shape: tuple[int, ...], expected: tuple[int, ...], fits: bool
) -> None:
    system, inputs = SimpleNamespace(n_features_in_=6, input_shape_=expected), np.zeros((4, *shape))
    if fits:
        found = inputs_as_fitted(system, inputs)
        assert found.shape == (4, 6)
        assert np.shares_memory(found, inputs)
        return
    with pytest.raises(InvalidInput, match="X: expected inputs of shape"):
        inputs_as_fitted(system, inputs)


def test_labels_are_named_and_withheld_answers_are_none_or_minus_one() -> None:
    places, withheld = np.array([1, -1, 0]), np.array([False, True, False])

    def named(classes: list[object]) -> list[object]:
        return class_names(places, np.array(classes), withheld=withheld).tolist()

    assert named(["no", "yes"]) == ["yes", None, "no"]
    assert named([0, 1]) == [1, -1, 0]
    assert named([1, 2]) == [2, None, 1]
