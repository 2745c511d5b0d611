"""No records are a data set like any other, and so is one. The contract asks it of every estimator;
here are several labels and targets, students, frames and tables without rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reticent.release.fits import not_counted
from reticent.systems import (
    LinearVoteClassifier,
    NoisyGradientClassifier,
    NoisyGradientRegressor,
)
from reticent.tables import Shards

PUBLIC_X = np.random.default_rng(0).normal(size=(30, 2))
CLASSES: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "classes": (0, 1, 2)}
SEVERAL: dict[str, Any] = {**CLASSES, "classes": [(0, 1, 2), ("a", "b")]}
TARGETS: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "target_range": (0.0, 1.0)}
TWO_TARGETS: dict[str, Any] = {**TARGETS, "target_range": ((0.0, 0.0), (1.0, 1.0))}

ESTIMATORS: dict[str, Callable[..., Any]] = {
    "gradient": lambda **more: NoisyGradientClassifier(steps=2, **CLASSES, **more),
    "student": lambda **more: NoisyGradientClassifier(
        steps=3, student_share=0.5, **CLASSES, **more
    ),
    "several labels": lambda **more: NoisyGradientClassifier(steps=2, **SEVERAL, **more),
    "two targets": lambda **more: NoisyGradientRegressor(steps=2, **TWO_TARGETS, **more),
    "linear votes": lambda **more: LinearVoteClassifier(answers=3, **CLASSES, **more),
}


def labels(name: str, rows: int) -> np.ndarray:
    codes = np.arange(rows) % 3
    if name.startswith("several"):
        both = [[code, "ab"[code % 2]] for code in codes.tolist()]
        return np.array(both, dtype=object).reshape(rows, 2)
    return np.column_stack([codes, codes]) * 0.3 if name == "two targets" else codes


@pytest.mark.parametrize("counting", ["add-remove", "replace"])
@pytest.mark.parametrize("name", ["student", "several labels", "two targets"])
def test_no_records_and_one_fit_and_answer(name: str, counting: str) -> None:
    known = pd.DataFrame(PUBLIC_X, columns=["a", "b"])
    for n, by_person in product((0, 1), (False, True)):
        rows = pd.DataFrame(np.ones((n, 2)), columns=["a", "b"])
        fit: dict[str, Any] = {"public_X": known, "public_y": labels(name, len(PUBLIC_X))}
        if by_person:
            fit["persons"] = ["anna"] * n
        with warnings.catch_warnings(), not_counted("nothing leaves"):
            warnings.simplefilter("error")
            model = ESTIMATORS[name](counting=counting).fit(rows, labels(name, n), **fit)
            answers = model.predict(known[:1])
        assert len(answers) == 1
        assert pd.notna(answers).all()
        assert f"{model.most_records_:,} records" in model.card().to_markdown()


@pytest.mark.parametrize("name", ["gradient", "linear votes"])
def test_tables_without_rows_are_shards_too(name: str) -> None:
    empty = np.zeros((0, 2)), np.zeros(0, dtype=int)
    codes = labels(name, len(PUBLIC_X))
    ESTIMATORS[name]().fit(Shards((empty[0],), (empty[1],)), public_X=PUBLIC_X)  # counted
    with not_counted("nothing leaves"):
        for rows, of in (([empty[0]], [empty[1]]), ([empty[0], PUBLIC_X], [empty[1], codes])):
            model = ESTIMATORS[name]().fit(Shards(tuple(rows), tuple(of)), public_X=PUBLIC_X)
            assert len(model.predict(PUBLIC_X[:1])) == 1


@pytest.mark.parametrize("name", ["gradient", "linear votes"])
def test_what_fits_says_nothing_of_which_labels_occur(name: str) -> None:
    with not_counted("nothing leaves"):
        for code in (0, 1, 2):
            model = ESTIMATORS[name]().fit(PUBLIC_X, np.full(30, code), public_X=PUBLIC_X)
            assert model.classes_.tolist() == [0, 1, 2]
