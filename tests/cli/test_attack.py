"""`reticent attack bundle`, `radius` and `plan-inputs`: a table, a page, an exit status."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.planning import input_methods, inputs
from reticent.tables import Numeric, TabularSchema

QUICK = ("--trials", "2000", "--seed", "3", "--candidates", "20")


@pytest.fixture
def flowers_file(tmp_path):
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "flowers.npz"
    np.savez(path, X=X, kind=y)
    return path


def test_games_caps_and_a_page(command, vectors_bundle, flowers_file, tmp_path) -> None:
    page = tmp_path / "attack.html"
    words = (
        "attack", "bundle", vectors_bundle, "--input", flowers_file, "--column", "kind", *QUICK,
        "--page", page,
    )  # fmt: skip
    answer = command(*words)
    assert answer.status == 0
    assert "proved cap" in answer.out
    assert "a decoder" in answer.out
    assert "20 candidates; seed 3; no budget was charged" in answer.out
    assert "no attack exceeded its cap" in answer.out
    text = page.read_text(encoding="utf-8")
    assert "which kind, after one answer" in text
    assert "proved floor" in text
    again = command(*words)
    assert again.status == 2
    assert "exists" in again.err
    assert command(*words, "--overwrite").out == answer.out  # one seed, one attack


@pytest.fixture
def points(tmp_path):
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 200)
    path = tmp_path / "points.npz"
    np.savez(path, X=random.normal(size=(200, 3)) + labels[:, None], y=labels)
    return path


def test_points_of_a_file(command, points, tmp_path) -> None:
    page = tmp_path / "radius.html"
    words = (
        "radius", points, "--array", "X", "--column", "y", "--radius", "0.5", "--radius", "1",
        "--epsilon", "1", "--page", page,
    )  # fmt: skip
    answer = command(*words)
    assert answer.status == 0
    assert "median distance to the nearest row with another y: " in answer.out
    assert "0.731" in answer.out
    text = page.read_text(encoding="utf-8")
    assert "200" in text
    assert text.count("<svg") == 2
    assert "Rules that choose R" in text
    assert command(*words).status == 2  # the page exists


WANTED = ("--epsilon", 2, "--delta", 0, "--seed", 0)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A table, its schema, and the quickest methods."""
    quick = [
        method
        for method in input_methods.METHODS
        if method.name in ("majority", "randomised response")
    ]
    monkeypatch.setattr(
        inputs.plan_inputs,
        "__kwdefaults__",
        {**inputs.plan_inputs.__kwdefaults__, "methods": quick},
    )
    rng = np.random.default_rng(0)
    ages = rng.uniform(0, 100, 240)
    doses = rng.uniform(0, 10, 240)
    lines = ["age,dose,kind,note"]
    lines += [
        f"{age:.4g},{dose:.4g},{'ill' if age > 50 else 'well'},n"
        for age, dose in zip(ages, doses, strict=True)
    ]
    (tmp_path / "public.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    schema = TabularSchema((Numeric("age", 0, 100), Numeric("dose", 0, 10)))
    schema.write(tmp_path / "schema.json")
    return tmp_path


def words(place, *more):
    return (
        *("plan-inputs", place / "public.csv", "--label-column", "kind", "--ignore-column", "note"),
        *("--schema", place / "schema.json", *WANTED, *more),
    )


def test_a_csv_file_from_end_to_end(place, command):
    page = place / "plan.html"
    answer = command(*words(place, "--page", page))
    assert answer.status == 0, answer.err
    assert "Take: randomised response" in answer.out
    assert f"Open {page}" in answer.out
    assert "only to compare with" not in answer.out  # nothing here has an estimator
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert command(*words(place, "--page", page)).status == 2
