"""The headline's parts on generated features: choosing, rows that are kept, the table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.choose import headline
from papers.choose.features import Parts
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
