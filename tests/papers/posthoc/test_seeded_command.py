"""What commands over seeds share: one cell is computed once, every seed has its folder, and the
files are where the command says.
"""

from __future__ import annotations

import json
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
from papers.posthoc.seeded_command import Cells, command_of, folder_of, seeded_parser

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


@pytest.mark.parametrize("data", [("mnist", "fashion"), ()])
def test_the_folder_is_named_by_the_data_unless_one_is_given(
    data: tuple[str, ...], tmp_path: Path
) -> None:
    parser = seeded_parser("papers.posthoc.ladder", "First.\n\nSecond.", runs="some", data=data)
    assert parser.description == "First."
    default = parser.parse_args(["--data", "fashion"] if data else [])
    assert folder_of(default) == Path("runs") / ("some-fashion" if data else "some")
    assert default.seeds == [0, 1, 2]
    assert folder_of(parser.parse_args(["--out", str(tmp_path)])) == tmp_path


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


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_every_command_says_how_it_is_called(command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(["--help"])
    assert stopped.value.code == 0
    assert f"usage: python -m {command.__name__} " in capsys.readouterr().out


def test_a_command_leaves_results_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = []

    def run(data, settings, folder, *, alphas, radii, seed, report):
        given.append((folder, alphas, radii))
        return {"0.5": {"constants": {"1": 1.0 + seed}, "spread": 2.0, "shares": {"1": 0.5}}}

    monkeypatch.setattr(constants_figure, "load", lambda name: name)
    monkeypatch.setattr(constants_figure, "run", run)
    constants_figure.main(
        ["--out", str(tmp_path), "--seeds", "0", "4", "--alpha", "0.5", "--radius", "1"]
    )
    assert given == [(tmp_path / f"seed{seed}", [0.5], [1.0]) for seed in (0, 4)]
    results = json.loads((tmp_path / "constants.json").read_text(encoding="utf-8"))
    assert [found["0.5"]["constants"]["1"] for found in results] == [1.0, 5.0]
    assert "| 0.5 | 3.00 ± 2.00 |" in (tmp_path / "constants.md").read_text(encoding="utf-8")
    assert (tmp_path / "constants.png").is_file()
    assert capsys.readouterr().out.strip() == str(tmp_path / "constants.md")
