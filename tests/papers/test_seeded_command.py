"""What commands over seeds share: one cell is computed once, every seed has its folder, and the
files are where the command says.
"""

from __future__ import annotations

from pathlib import Path

from papers.seeded_command import Cells


def test_cells_are_computed_once_and_told_about(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    made: list[str] = []

    def compute() -> dict[str, float]:
        made.append("again")
        return {"a": 0.5}

    for _ in range(2):
        cells = Cells(
            tmp_path / "new" / "cells",
            "cells",
            2,
            lambda title, done, total, _: told.append((title, done, total)),
        )
        assert [cells("one", compute), cells("two", compute)] == [{"a": 0.5}] * 2
    assert len(made) == 2
    assert told == [("cells", 1, 2), ("cells", 2, 2)] * 2
