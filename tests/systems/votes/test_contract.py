"""The contract of everything that releases, for every estimator of this package."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from reticent.systems import (
    Features,
    LinearVoteClassifier,
    NoisyGradientClassifier,
    NoisyGradientRegressor,
    PateClassifier,
    PublicReference,
    PublicStartClassifier,
    PublicStartRegressor,
    Teachers,
)
from reticent.testing import Case, Check, checks_of

ROWS = np.array(
    [[-3.0, 0.0], [0.2, 0.1], [0.2, 0.1], [2.0, 2.0], [1.0, -2.0], [-1.0, 1.0], [0.4, 0.3], [3, 1]]
)
LABELS = np.array([0, 1, 1, 0, 1, 0, 0, 1])
PUBLIC = np.random.default_rng(0).normal(size=(30, 2)) * 2.0
PERSONS = np.array([0, 0, 0, 1, 2, 2, 3, 3])
QUERY = np.array([[0.3, 0.2]])
EXTREME = np.array([[1e9, -1e9], [0.1, 0.1]])

LABELLED: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "classes": (0, 1)}
TARGETS: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "target_range": (0.0, 1.0)}

MODELS = {
    "descent": NoisyGradientClassifier(steps=3, **LABELLED),
    "descent of a range": NoisyGradientClassifier(
        steps=3, features=Features(range=(-3, 3)), **LABELLED
    ),
    "descent, replaced": NoisyGradientClassifier(
        steps=3, counting="replace", records=8, **LABELLED
    ),
    "descent on targets": NoisyGradientRegressor(steps=3, **TARGETS),
    "descent on two targets": NoisyGradientRegressor(
        steps=2, **{**TARGETS, "target_range": (0.0, (1.0, 2.0))}
    ),
}
STARTED = {
    "public start": PublicStartClassifier(pool=[LogisticRegression()], records=8, **LABELLED),
    "public start, counted": PublicStartClassifier(
        rows="embedding", pool=[LogisticRegression()], **LABELLED
    ),
    "public start, replaced": PublicStartClassifier(
        rows="embedding",
        pool=[LogisticRegression()],
        counting="replace",
        records=8,
        **LABELLED,
    ),
    "public start, three labels": PublicStartClassifier(
        rows="embedding", pool=[LogisticRegression()], **{**LABELLED, "classes": (0, 1, 2)}
    ),
    "public start, two columns": PublicStartClassifier(
        rows="embedding",
        pool=[LogisticRegression()],
        records=8,
        **{**LABELLED, "classes": [(0, 1), (0, 1, 2)]},
    ),
    "public start, no public labels": PublicStartClassifier(rows="embedding", **LABELLED),
    "public start, no public labels, replaced": PublicStartClassifier(
        rows="embedding", counting="replace", **LABELLED
    ),
}
TREE = DecisionTreeClassifier(max_depth=2, splitter="random")  # which a seed must settle
TEACHERS = Teachers(estimator=TREE, number=3, random_state=0)
QUERIES = {
    "linear votes": LinearVoteClassifier(answers=80, **LABELLED),
    "linear votes, one answer": LinearVoteClassifier(answers=1, **{**LABELLED, "delta": 0.0}),
    "linear votes beside public models": LinearVoteClassifier(
        answers=80,
        features=PublicReference(models=[LogisticRegression()], rows="embedding", records=8),
        **LABELLED,
    ),
    "teachers": PateClassifier(answers=80, teachers=TEACHERS, **LABELLED),
    "teachers, one answer": PateClassifier(
        answers=1, teachers=TEACHERS, counting="replace", **{**LABELLED, "delta": 0.0}
    ),
}


def gaussian_law(fitted: Any) -> dict[Any, float]:
    """The chances of the largest of two votes, with the noise that is charged."""
    [votes], [sigma] = fitted.vote_table(QUERY), fitted.response_.mechanism.sigmas
    first = float(ndtr((votes[0] - votes[1]) / (sigma * np.sqrt(2.0))))
    return {0: first, 1: 1.0 - first}


def margin_law(fitted: Any) -> dict[Any, float]:
    """The chances of two labels by randomised response to the exact margin."""
    table = fitted.vote_table(QUERY).astype(np.float64)
    [level], winner = fitted.response_.levels(table), int(table[0].argmax())
    right = 1.0 / (1.0 + np.exp(-fitted.response_.per_answer * (level + 1.0)))
    return {winner: float(right), 1 - winner: 1.0 - float(right)}


def cases() -> dict[str, Case]:
    """Every estimator, with data on which a check takes milliseconds."""
    found = {}
    for name, model in MODELS.items():
        fit = {} if "range" in name else {"public_X": PUBLIC}
        y, labels = LABELS, None
        if "two" in name:
            y, labels = np.column_stack([LABELS, 2 * LABELS]), ((0, 2), (1, 0))
        found[name] = Case(estimator=model, X=ROWS, y=y, fit=fit, extreme=EXTREME, labels=labels)
    labelled = {"public_X": PUBLIC, "public_y": (PUBLIC[:, 0] > 0).astype(int)}
    for name, model in STARTED.items():
        y, fit, labels = LABELS, labelled, None
        if "two columns" in name:
            y = np.column_stack([LABELS, LABELS + 1])
            fit = {**labelled, "public_y": np.column_stack([labelled["public_y"]] * 2)}
            labels = ((0, 2), (1, 0))
        if "no public labels" in name:
            fit = {"public_X": PUBLIC}
        found[name] = Case(estimator=model, X=ROWS, y=y, fit=fit, extreme=EXTREME, labels=labels)
    for name, system in QUERIES.items():
        found[name] = Case(
            estimator=system,
            X=ROWS,
            y=LABELS,
            fit={} if "teachers" in name else labelled,
            queries=QUERY,
            extreme=EXTREME,
            law=gaussian_law if system.delta else margin_law,
        )
    found["public start of targets"] = Case(
        estimator=PublicStartRegressor(rows="embedding", pool=[Ridge()], **TARGETS),
        X=ROWS,
        y=LABELS,
        fit=labelled,
        extreme=EXTREME,
    )
    return found


WHOLE = ("descent", "linear votes", "linear votes, one answer")
"""One case of each way to sum: the others share its noise and are audited for less time."""

OF_UNITS = ("few records", "sums", "sizes", "noise", "audit")
"""Checks that see who owns a record. The others would repeat what one record each has shown."""

OF_NOISE = ("noise", "audit")
"""Of these, checks of the noise, which does not see persons: of one case of each way to sum."""

OF_CALLS = ("threads", "forks", "refusals", "seeds", "price")
"""Checks of how an estimator is called. Those with other settings (after a comma) share them."""

CHECKS = [
    pytest.param(check, id=f"{name}, {check.name}")
    for name, case in cases().items()
    for check in checks_of(case, seconds=1.0 if name in WHOLE else 0.3)
    if name in WHOLE or "," not in name or check.name not in OF_CALLS
] + [
    pytest.param(check, id=f"{name}, of persons, {check.name}")
    for name, case in cases().items()
    for check in checks_of(replace(case, persons=PERSONS), seconds=0.3)
    if check.name in OF_UNITS and (name in WHOLE or check.name not in OF_NOISE)
]


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check) -> None:
    """Chance fails the audit of a sound system once in 10^6 runs, the noise once in 1.7 10^6."""
    check()
