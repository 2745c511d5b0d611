"""Labels are checked one by one, and a tuning cut is a partition that its seed alone decides."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core.errors import InvalidInput
from reticent.datasets.parts import check_labels, tuning_cut


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            np.zeros(4, dtype=np.int64),
            r"y: expected int64 of shape \(3,\), got dtype=int64 shape=\(4,\)",
        ),
        (np.zeros((3, 1), dtype=np.int64), r"shape=\(3, 1\)"),
        (np.zeros(3), "got dtype=float64"),
        (np.array([0, 1, 2]), r"y: expected values in 0\.\.1"),
        (np.array([0, -1, 1]), r"y: expected values in 0\.\.1"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        check_labels(labels, rows=3, classes=2, name="y")


@pytest.mark.parametrize(
    ("rows", "held_out", "scored"), [(10, 0.3, 3), (2, 0.5, 1), (1000, 0.0006, 1)]
)
def test_a_cut_is_a_partition_that_the_seed_decides(
    rows: int, held_out: float, scored: int
) -> None:
    train, score = tuning_cut(rows, held_out=held_out, seed=7)
    assert len(score) == scored
    assert sorted([*train.tolist(), *score.tolist()]) == list(range(rows))
    again = tuning_cut(rows, held_out=held_out, seed=7)
    assert np.array_equal(np.concatenate(again), np.concatenate([train, score]))
