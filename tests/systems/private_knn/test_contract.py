"""The contract of everything that releases, for classifiers by private neighbours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reticent.systems import (
    Ball,
    Features,
    IndividualKNNClassifier,
    Neighbours,
    PrivateKNNClassifier,
)
from reticent.testing import Case, Check, checks_of
from tests.systems.votes.test_contract import LABELS, PERSONS, PUBLIC, QUERY, ROWS

CASES = {
    "private-kNN": Case(
        estimator=PrivateKNNClassifier(
            epsilon=4.0,
            delta=1e-5,
            queries=80,
            neighbours=Neighbours(number=3, sampling_probability=0.5),
            classes=(0, 1),
            features=Features(range=(-4, 4)),
        ),
        X=ROWS,
        y=LABELS,
        queries=QUERY,
    ),
    "private-kNN, screened": Case(
        estimator=PrivateKNNClassifier(
            epsilon=8.0,
            delta=1e-5,
            queries=80,
            answers=79,
            neighbours=Neighbours(number=3, sampling_probability=0.5, threshold=2.0),
            classes=(0, 1),
            features=Features(range=(-4, 4)),
            fallback=0,
        ),
        X=ROWS,
        y=LABELS,
        queries=QUERY,
    ),
    "individual filters": Case(
        estimator=IndividualKNNClassifier(
            epsilon=4.0, delta=1e-5, classes=(0, 1), votes=4.0, ball=Ball(share=0.3)
        ),
        X=ROWS,
        y=LABELS,
        fit={"public_X": PUBLIC},
        queries=QUERY,
    ),
}
CASES |= {
    f"{name}, of persons": replace(case, persons=PERSONS)
    for name, case in CASES.items()
    if "screened" not in name
}  # fmt: skip
CHECKS = [
    pytest.param(check, id=f"{name}, {check.name}")
    for name, case in CASES.items()
    for check in checks_of(case, seconds=1.0)
]


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check) -> None:
    """Chance fails the audit of a sound system once in 10^6 runs."""
    check()
