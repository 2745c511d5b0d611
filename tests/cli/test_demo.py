"""`reticent demo` writes its whole folder, and only its own; its bundle works."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from reticent.datasets import load_digits
from reticent.demos import posthoc, power
from reticent.systems.loading import load
from reticent.training.heads import HeadConfig


def short_posthoc(*, seed: int, whole: Any = posthoc.Settings) -> Any:
    found = whole(seed=seed)
    return replace(
        found,
        embedder=replace(found.embedder, epochs=2),
        epochs=2,
        head=HeadConfig(epochs=2, hidden=(16,)),
        attack=replace(found.attack, epochs=1),
        copies=1,
        train_rows=300,
        test_rows=60,
    )


def short_power(*, seed: int, whole: Any = power.Settings) -> Any:
    return whole(epochs=1, training_rows=400, held_out_rows=60, seed=seed)


def as_measured(results: Any, bundle: Any) -> bool:
    data = load_digits()
    right = (bundle.predict(data.test_rows) == data.test_labels).mean()
    return results["data"] == "digits" and np.isclose(right, results["model"])


@dataclass(frozen=True)
class Case:
    """A demonstration: its short settings, the rows that it leaves for `release` and their number,
    and what its results must say of its bundle.
    """

    name: str
    holds: Callable[[Any, Any], bool]
    short: tuple[Any, str, Any] | None = None
    rows: str | None = None
    number: int = 0
    options: tuple[str, ...] = ()


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "posthoc",
            lambda results, _: results["settings"]["train_rows"] == 300,
            (posthoc, "Settings", short_posthoc),
            "held-out.npy",
            60,
        ),
        Case(
            "power",
            lambda results, _: (
                (results["data"], results["settings"]["seed"]) == ("adult-sample", 5)
            ),
            (power, "Settings", short_power),
            "held-out.csv",
            60,
            ("--seed", "5"),
        ),
        Case(
            "certified",
            lambda results, _: results["data"] == "adult-sample",
            rows="queries.npy",
        ),
        Case("model", as_measured),
    ],
    ids=lambda case: case.name,
)
def test_the_folder_is_complete_and_its_bundle_works(command, tmp_path, monkeypatch, case):
    if case.short:
        monkeypatch.setattr(*case.short)
    out = tmp_path / "out"
    answer = command("demo", case.name, "--output", out, *case.options)
    assert answer.status == 0, answer.err
    assert f"Open {out / 'index.html'}" in answer.out
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    names = {"bundle", "card.md", "index.html", "results.json"} | ({case.rows} - {None})
    assert {path.name for path in out.iterdir()} == names
    assert (out / "index.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert case.holds(json.loads((out / "results.json").read_text()), load(out / "bundle"))
    # The commands that the page shows, run as it shows them.
    monkeypatch.chdir(out)
    shown = command("card", "bundle")
    assert shown.status == 0
    assert shown.out.strip() == (out / "card.md").read_text(encoding="utf-8").strip()
    if case.rows:
        done = command("release", "bundle", "--input", case.rows, "--output", "released.npz")
        assert done.status == 0
        with np.load("released.npz") as released:
            assert len(released["values"]) == (case.number or len(np.load(case.rows)))
            assert not released["withheld"].any()
