"""`reticent plan-inputs` reads public rows and prints which release of an input to take."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.planning import input_methods, inputs
from reticent.tables import Numeric, TabularSchema

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
