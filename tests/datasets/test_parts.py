"""Labels are checked one by one, and a tuning cut is a partition that its seed alone decides."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.datasets.parts import tuning_cut


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
