"""The table of score bins: what it says of cuts that are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from papers.power.code_methods import AUTO, RUNG
from papers.power.codes import cut_results, main, table, verdicts

NAMES = (
    AUTO,
    "score bins, by information",
    "network's class + randomised response",
    RUNG,
    "booster + randomised response",
    "raw columns",
)


def cut(gain: float, seconds: float) -> dict[str, dict[str, dict[str, float | str]]]:
    """Every method at .1 nats, but "auto", which is ``gain`` above."""
    scores = {"accuracy": 0.7, "balanced_accuracy": 0.6, "auc": 0.65, "seconds": seconds}
    return {
        "2": {
            name: {**scores, "information": 0.1 + gain * (name == AUTO), "chosen": "trees"}
            for name in NAMES
        }
    }


def test_differences_are_paired_by_cut() -> None:
    cuts = [cut(0.01, 1.0), cut(0.03, 3.0)]
    lines = table("toy", cuts)
    assert len(lines) == len(NAMES)
    assert '| toy | 2 | "auto", by information | 0.7000 ± 0.0000 |' in lines[0]
    assert "0.0200 ± 0.0100 | 2.0 | trees |" in lines[0]
    [line] = verdicts("toy", cuts)
    assert "| +0.0200 ± 0.0100 | +0.0000 ± 0.0000 | +0.0000 ± 0.0000 | 1.0 |" in line
    lost = cut(0.0, 4.0)
    lost["2"][RUNG].update(balanced_accuracy=0.64, seconds=8.0)
    [line] = verdicts("toy", [cut(0.0, 4.0), lost])
    assert line.endswith("| -0.0200 ± 0.0200 | +0.0000 ± 0.0000 | 0.8 |")


def test_cuts_that_stand_in_the_folder_are_not_computed_again(tmp_path: Path) -> None:
    (tmp_path / "wine-0.json").write_text(json.dumps(cut(0.05, 1.0)))
    found = cut_results("wine", seed=0, tuning=False, folder=tmp_path)
    assert found == cut(0.05, 1.0)


def test_the_command_writes_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(2):
        (tmp_path / f"wine-{seed}.json").write_text(json.dumps(cut(0.05, 1.0)))
    main(["--data", "wine", "--seeds", "2", "--folder", str(tmp_path)])
    assert "+0.0500 ± 0.0000" in capsys.readouterr().out
    assert (tmp_path / "table.md").read_text().count("| wine |") == len(NAMES) + 1
    with pytest.raises(SystemExit):
        main(["--data", "wine", "--seeds", "0", "--folder", str(tmp_path)])
