"""`reticent plan-inputs` reads public rows and prints which release of an input to take."""

from __future__ import annotations

import json
import re

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


def test_radii_and_json(place, command):
    answer = command(*words(place, "--attribute-radius", "age=5", "--json"))
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert found["protects"] == "inputs"
    assert found["guarantee"]["adjacency"]["type"] == "Neighborhood"
    assert {row["method"] for row in found["rows"]} == {"randomised response", "majority"}


def test_an_array_with_labels_of_their_own(place, command):
    rows = np.genfromtxt(place / "public.csv", delimiter=",", skip_header=1, dtype=str)
    np.savez(place / "rows.npz", rows=rows[:, :2].astype(float), other=np.zeros(3))
    (place / "kinds.csv").write_text("\n".join(["kind", *rows[:, 2]]) + "\n")
    given = (
        "plan-inputs",
        place / "rows.npz",
        "--array",
        "rows",
        "--schema",
        place / "schema.json",
    )
    labelled = (*given, *WANTED, "--json", "--labels", place / "kinds.csv")
    one, other = (command(*call).out for call in (labelled, words(place, "--json")))
    assert re.sub(r'"seconds": .*', "", one) == re.sub(r'"seconds": .*', "", other) != ""
    assert command(*given, *WANTED).status == 2
    assert command(*labelled, "--label-column", "kind").status == 2
