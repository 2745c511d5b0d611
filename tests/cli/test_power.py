"""`reticent demo power`: what it writes, and what it refuses before it works."""

from __future__ import annotations

import json

import pytest

from reticent.cli.main import run
from reticent.systems import PowerEncoder


@pytest.mark.slow
def test_demo_writes_a_bundle_a_card_and_figures(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "demo"
    assert run(["demo", "power", "--out", str(target)]) == 0
    printed = capsys.readouterr().out
    results = json.loads((target / "results.json").read_text())
    assert results["published mode"]["inverted to 1e-3"] > 0.95
    assert results["releases"]["any two records"]["accuracy"] > results["majority"] + 0.1
    assert (target / "summary.md").read_text() in printed
    loaded = PowerEncoder.load(target / "bundle")
    assert loaded.card().to_markdown() == (target / "card.md").read_text()


def test_demo_refuses(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "power", "--data", "iris"]) == 2
    assert "'iris' is not one of" in capsys.readouterr().err
    (tmp_path / "thesis.txt").write_text("")
    assert run(["demo", "power", "--out", str(tmp_path)]) == 2
    assert "holds no results.json" in capsys.readouterr().err
