"""Tables: shapes that fit, and a split that tuning may see."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core.errors import InvalidParameter
from reticent.datasets.table import Table, last_fifth_held_out

ROWS = np.arange(40.0).reshape(20, 2)
TABLE = Table(
    "toy",
    ("a", "b"),
    ROWS[:15],
    np.arange(15) % 2,
    ROWS[15:],
    np.arange(5) % 2,
    ("no", "yes"),
    "made by hand",
)


def test_tuning_never_sees_the_held_out_part() -> None:
    tuning = TABLE.for_tuning(held_out=0.2, seed=0)
    seen = {tuple(row) for row in np.concatenate([tuning.train_rows, tuning.test_rows])}
    assert seen == {tuple(row) for row in TABLE.train_rows}
    assert len(tuning.test_rows) == 3
    assert TABLE.classes == 2
    with pytest.raises(InvalidParameter, match=r"held_out=1\.0"):
        TABLE.for_tuning(held_out=1.0, seed=0)


def test_the_split_is_a_partition() -> None:
    train, test = last_fifth_held_out(101)
    assert len(test) == 20
    assert sorted(np.concatenate([train, test]).tolist()) == list(range(101))
