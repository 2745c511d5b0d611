"""Regret and coverage of following a plan are what they say, on a case written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from papers.choose.left_out import regrets_of, rows_of
from papers.choose.sources import table_of

SCORES = {"public start": 0.8, "public models alone": 0.7, "constant": 0.5, "moment": 0.83}
CASE = {
    "table": "by hand",
    "split": 0,
    "n": [250, 5000, 3000],
    "plan": {
        "accuracy": {
            "0.5": {
                "winner": "public start",
                "at_least": 0.81,
                "rows": {"public start": [0.86, 0.02, 0.0, 0.0, False]},
            }
        }
    },
    "truth": {
        name: {"0.5": {"accuracy": [score, score, score - 0.01 * (name == "moment")]}}
        for name, score in SCORES.items()
    },
}


def test_regret_is_against_the_best_of_the_union_in_hindsight() -> None:
    [row] = regrets_of(CASE)
    assert (row["best"], row["winner"]) == ("moment", "public start")
    assert row["regret"] == pytest.approx(3.0)
    # Chosen on one half, scored on the other: .83 and .82 less .80.
    assert row["fair"] == pytest.approx(2.5)
    assert (row["held"], row["too_high"], row["small"]) == (False, True, False)


def test_no_row_is_in_two_parts(tmp_path: Path) -> None:
    """Of a table that is read back, small or not: parts share no row, and the least are public."""
    for size, few, public in ((400, False, 60), (400, True, 20), (2000, False, 75)):
        lines = [["number", "word", "label"]]
        lines += [[str(i), "ab"[i % 2], str(i % 3)] for i in range(size)]
        path = tmp_path / "t.csv"
        path.write_text("\n".join(",".join(line) for line in lines), encoding="utf-8")
        rows = rows_of(table_of(path), 0, few=few)
        numbers = [part[:, 0] for part in rows.raw]
        assert len(numbers[0]) == len(rows.public) == public
        together = np.concatenate(numbers).astype(float)
        assert len(np.unique(together)) == len(together)
        for part, own in zip(numbers, rows.labels, strict=True):
            assert np.array_equal(part.astype(float) % 3, own)
