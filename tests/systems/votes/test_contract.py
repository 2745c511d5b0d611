"""The contract of everything that releases, for every estimator of this package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.systems import (
    CellsClassifier,
    CellsRegressor,
    Features,
    LinearVoteClassifier,
    MomentClassifier,
    MomentRegressor,
    NoisyGradientClassifier,
    NoisyGradientRegressor,
    RadiusVotesClassifier,
)
from reticent.testing import Case, Check, checks_of

ROWS = np.array(
    [[-3.0, 0.0], [0.2, 0.1], [0.2, 0.1], [2.0, 2.0], [1.0, -2.0], [-1.0, 1.0], [0.4, 0.3], [3, 1]]
)
LABELS = np.array([0, 1, 1, 0, 1, 0, 0, 1])
PUBLIC = np.random.default_rng(0).normal(size=(30, 2)) * 2.0
EXTREME = np.array([[1e9, -1e9], [0.1, 0.1]])

LABELLED: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "classes": (0, 1)}
TARGETS: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "target_range": (0.0, 1.0)}

MODELS = {
    "cells": CellsClassifier(cells=4, **LABELLED),
    "cells of a range": CellsClassifier(cells=4, features=Features(range=(-3, 3)), **LABELLED),
    "moments": MomentClassifier(**LABELLED),
    "moments, replaced": MomentClassifier(counting="replace", **LABELLED),
    "descent": NoisyGradientClassifier(steps=3, **LABELLED),
    "descent, replaced": NoisyGradientClassifier(
        steps=3, counting="replace", records=8, **LABELLED
    ),
    "cells of targets": CellsRegressor(cells=4, **TARGETS),
    "moments of targets": MomentRegressor(**TARGETS),
    "descent on targets": NoisyGradientRegressor(steps=3, **TARGETS),
}
QUERIES = {
    "linear votes": LinearVoteClassifier(answers=80, **LABELLED),
    "linear votes, one answer": LinearVoteClassifier(answers=1, **{**LABELLED, "delta": 0.0}),
    "radius votes": RadiusVotesClassifier(answers=80, share=0.2, **LABELLED),
}


def cases() -> dict[str, Case]:
    """Every estimator, with data on which a check takes milliseconds."""
    found = {}
    for name, model in MODELS.items():
        fit = {} if "range" in name else {"public_X": PUBLIC}
        found[name] = Case(estimator=model, X=ROWS, y=LABELS, fit=fit, extreme=EXTREME)
    for name, system in QUERIES.items():
        found[name] = Case(
            estimator=system,
            X=ROWS,
            y=LABELS,
            fit={"public_X": PUBLIC},
            queries=np.array([[0.3, 0.2]]),
            extreme=EXTREME,
        )
    return found


CHECKS = [
    pytest.param(check, id=f"{name}, {check.name}")
    for name, case in cases().items()
    for check in checks_of(case, seconds=3.0)
]


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check) -> None:
    """Chance fails the audit of a sound system once in 10^6 runs, the noise once in 1.7 10^6."""
    check()
