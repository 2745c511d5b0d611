"""A split that tuning may see."""

from __future__ import annotations

import numpy as np

from papers.power.parts import for_tuning
from reticent.datasets.table import Table

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
    tuning = for_tuning(TABLE)
    seen = {tuple(row) for row in np.concatenate([tuning.train_rows, tuning.test_rows])}
    assert seen == {tuple(row) for row in TABLE.train_rows}
    assert len(tuning.test_rows) == 3
    assert TABLE.classes == 2
