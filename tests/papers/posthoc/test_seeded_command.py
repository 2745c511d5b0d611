"""What commands over seeds share: one cell is computed once, every seed has its folder, and the
files are where the command says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from papers.posthoc import (
    constants_figure,
    label_tables,
    ladder,
    linkage,
    local_privacy_table,
    reconstruction_table,
)
from papers.posthoc.seeded_command import Cells, command_of, seeded_parser

COMMANDS = (
    constants_figure,
    label_tables,
    ladder,
    linkage,
    local_privacy_table,
    reconstruction_table,
)


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


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], "--data mnist"),
        (["--seeds", "0", "1", "2", "--rate", "0.5", "--rows", "9"], "--data mnist --rows 9"),
        (["--data", "fashion", "--seeds", "3"], "--data fashion --seeds 3"),
        (["--rate", "1", "0.25", "--one-more"], "--data mnist --rate 1 0.25 --one-more"),
    ],
)
def test_the_command_is_named_with_what_is_not_as_usual(arguments: list[str], shown: str) -> None:
    parser = seeded_parser("papers.some", "Some.", runs="some")
    parser.add_argument("--rate", type=float, nargs="+", default=[0.5])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--one-more", action="store_true")
    chosen = parser.parse_args(arguments)
    found = command_of(chosen, "papers.some", rate=[0.5], rows=None, one_more=False)
    assert found == f"python -m papers.some {shown}"
