"""The set of labels is public because somebody says so, not because it was read off the records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.systems import CertifiedClassifier
from reticent.systems.record_labels import record_labels

X = np.random.default_rng(0).random((40, 2))
Y = np.arange(40) % 2


def certified(**classes: Any) -> CertifiedClassifier:
    return CertifiedClassifier(epsilon=1.0, k_max=1, **classes)


def test_nothing_is_taken_from_the_records_unless_it_is_said() -> None:
    with pytest.raises(TypeError, match="classes"):
        certified()
    for silent in (None, b"observed"):
        with pytest.raises(InvalidParameter, match="classes="):
            certified(classes=silent).fit(X, Y)
    card = certified(classes="observed").fit(X, Y).card().to_markdown()
    assert "which labels occur among the records: whoever sees the labels knows" in card
    assert "classes='observed'" not in certified(classes=[0, 1]).fit(X, Y).card().to_markdown()


def test_one_record_with_a_label_of_its_own_changes_no_answer_s_possibility() -> None:
    """With labels taken from the records the third label is impossible without it, at any
    epsilon.
    """
    other = Y.copy()
    other[0] = 2
    for classes, first, second in (
        ([0, 1, 2], [0, 1, 2], [0, 1, 2]),
        ("observed", [0, 1], [0, 1, 2]),
    ):
        for labels, known in ((Y, first), (other, second)):
            assert certified(classes=classes).fit(X, labels).classes_.tolist() == known


@pytest.mark.parametrize(
    ("y", "classes", "error", "message"),
    [
        (None, [0, 1], InvalidInput, "requires y to be passed"),
        ([0, 1, 0], [0, 1], InvalidInput, "one label for each of 2 records"),
        ([0.5, 0.7], [0, 1], InvalidInput, "Unknown label type"),
        ([0.0, np.nan], [0, 1], InvalidInput, "contains NaN"),
        ([[0, 1], [1, 0]], [0, 1], InvalidInput, "one label per record in one list"),
        ([0, 7], [0, 1], InvalidInput, "labels from classes only"),
        ([0, 1], ["a", "b"], InvalidInput, "labels from classes only"),
        ([0, 1], [1], InvalidInput, "expected at least two, got 1 class"),
        ([0, 1], [0.0, np.inf], InvalidParameter, "classes: expected the labels"),
        ([0, 1], [0, None], InvalidParameter, "not all of one kind"),
        ([object(), object()], [0, 1], InvalidInput, "y: "),
    ],
)
def test_what_is_no_label_is_refused(
    y: Any, classes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        record_labels(y, 2, classes)
