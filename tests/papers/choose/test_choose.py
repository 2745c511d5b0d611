"""Choosing settings: what may be read for it, what is kept, and what following a plan costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.choose import headline, regression
from papers.choose.features import Parts
from papers.choose.left_out import regrets_of, rows_of
from papers.choose.sources import table_of
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier


def parts(seed: int) -> Parts:
    rng = np.random.default_rng(seed)
    centres = 3.0 * np.random.default_rng(99).normal(size=(10, 6))
    labels = rng.integers(0, 10, 1500)
    rows = centres[labels] + rng.normal(size=(1500, 6))
    cut = [slice(0, 1000), slice(1000, 1300), slice(1300, 1500)]
    pairs = [part for piece in cut for part in (rows[piece], labels[piece])]
    return Parts(*pairs, unseen=100)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []

    def made(data: str, **rest: object) -> Parts:
        asked.append(f"{data} {rest['transductive']}")
        return parts(len(data))

    settings = [{"components": kept, "whitening": 0.0, "steps": 5} for kept in (1, 6)]
    monkeypatch.setattr(headline, "parts_of", made)
    monkeypatch.setattr(headline, "ROWS", {"descent": (NoisyGradientClassifier, settings)})
    return asked


def test_settings_come_from_the_other_data_set_and_rows_are_kept(
    small: list[str], tmp_path: Path
) -> None:
    rows = headline.run("mnist", ["descent"], transductive=False, folder=tmp_path)
    assert list(rows) == ["descent at 0.1", "descent at 0.5"]
    assert small == ["fashion False", "mnist False"] * 2
    assert rows["descent at 0.5"]["settings"]["components"] == 6
    again = headline.run("mnist", ["descent"], transductive=False, folder=tmp_path)
    assert again == json.loads((tmp_path / "headline-mnist.json").read_text())
    assert len(small) == 4


def test_choosing_reads_no_scored_picture(small: list[str], tmp_path: Path) -> None:
    given = parts(1)
    blind = replace(given, test=np.full_like(given.test, np.nan), test_y=9 - given.test_y)
    for place, one in enumerate((given, blind)):
        trials = tmp_path / f"trials-{place}.json"
        assert headline.choose("descent", one, epsilon=0.5, trials=trials)["components"] == 6
    assert (tmp_path / "trials-0.json").read_text() == (tmp_path / "trials-1.json").read_text()


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


RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(3000, 4))
TARGETS = 3.0 * ROWS[:, 0] - ROWS[:, 1] + 0.2 * RNG.normal(size=3000)


def parts_of_regression(seed: int = 1) -> regression.Parts:
    return regression.parts_of(ROWS, TARGETS, seed=seed)


def test_settings_are_chosen_on_public_rows_alone() -> None:
    found = parts_of_regression()
    grid = [{"residual": 0.001}, {"residual": 0.5}]
    assert regression.chosen("noisy gradient descent", found, grid, epsilon=50.0) == grid[1]
    hidden = regression.Parts(
        np.full_like(found.private, np.nan),
        np.full_like(found.private_y, np.nan),
        found.public,
        found.public_y,
        np.full_like(found.scored, np.nan),
        np.full_like(found.scored_y, np.nan),
    )
    assert regression.chosen("noisy gradient descent", hidden, grid, epsilon=50.0) == grid[1]
