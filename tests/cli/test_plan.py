"""`reticent plan` reads public rows and prints which method to take."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from reticent.planning import candidates as registry
from reticent.planning.constant import Constant
from reticent.planning.public_rows import PublicRows
from reticent.planning.released_models import released_models

WANTED = ("--private", 5000, "--epsilon", 1, "--delta", "1e-6", "--seed", 0)


@pytest.fixture
def few(monkeypatch):
    """The quickest methods, so that a test takes seconds."""
    moment = next(one for one in released_models() if one.name == "moment")
    monkeypatch.setattr(registry, "_own", lambda: [Constant(), PublicRows(), moment])


@pytest.fixture
def table(tmp_path):
    """breast_cancer as CSV, with its labels in words and a column to leave out."""
    data = load_breast_cancer()
    names = [f"x{place}" for place in range(6)]
    lines = [",".join([*names, "kind", "note"])]
    lines += [
        ",".join([*(f"{value:.6g}" for value in row[:6]), data.target_names[kind], "n"])
        for row, kind in zip(data.data, data.target, strict=True)
    ]
    path = tmp_path / "public.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_csv_file_from_end_to_end(few, table, tmp_path, command):
    page = tmp_path / "plan.html"
    answer = command(
        *("plan", table, *WANTED, "--label-column", "kind", "--ignore-column", "note"),
        *("--scoring", "accuracy", "--page", page),
    )
    assert answer.status == 0, answer.err
    assert "public rows alone" in answer.out
    assert "Take: " in answer.out
    assert f"Open {page}" in answer.out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    again = command("plan", table, *WANTED, "--label-column", "kind", "--page", page)
    assert again.status == 2
    assert again.out == ""


def test_arrays_and_json(few, tmp_path, command):
    X, y = load_breast_cancer(return_X_y=True)
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "labels.npy", y)
    answer = command(
        *("plan", tmp_path / "rows.npy", *WANTED, "--labels", tmp_path / "labels.npy", "--json"),
        *("--answers", 20, "--neighbours", "replace"),
    )
    found = json.loads(answer.out)
    assert found["guarantee"]["adjacency"]["records"] == 1
    assert found["n_public"] == 569
    assert found["answers"] == 20
    assert {row["method"] for row in found["rows"]} == {"constant", "public rows alone", "moment"}
    assert found["rows"][0]["utility"] > -0.3


def test_privacy_has_no_default(table, command):
    for missing in ("--private", "--epsilon", "--delta"):
        words = [*map(str, WANTED), "--label-column", "kind", "--ignore-column", "note"]
        at = words.index(missing)
        answer = command("plan", table, *words[:at], *words[at + 2 :])
        assert answer.status == 2
        assert missing in answer.err
