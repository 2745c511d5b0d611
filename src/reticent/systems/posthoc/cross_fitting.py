"""The choice of a rung where public rows are few: fitted on some folds, scored on the other.

One fifth of a few hundred rows is too little to choose by. So the best plans of that split are
fitted again without each other fifth, and scored on rows that no part of theirs has seen. The
winner's function is then fitted on all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from reticent.systems.posthoc.calibration import CalibrationData, Candidate, Choice
from reticent.systems.posthoc.plans import Path
from reticent.systems.record_labels import FEW_ROWS, balanced_folds

_FINALISTS = 3
_LEAST_OF_LABEL = 2  # so that every fit has all labels


Refit = Callable[[Candidate, CalibrationData], Candidate | None]
"""Fits the function of a candidate on training rows, or returns None where its mechanism does not
take as many values as it has then."""

Score = Callable[[Candidate, CalibrationData, Path], Choice]
"""Chooses among plans of one candidate on one path."""


def few(choice: Choice, data: CalibrationData) -> bool:
    """Return whether rows are so few that plans are compared across folds.

    That is for those that a first look left, where every label has rows enough.
    """
    if len(choice.near) < 2 or data.train_labels is None:
        return False
    return (
        len(data.train) + len(data.held) < FEW_ROWS
        and _folds(data) > 1
        and int(np.bincount(data.train_labels).min()) >= _LEAST_OF_LABEL
    )


def cross_fitted(choice: Choice, data: CalibrationData, fit: Refit, score: Score) -> Choice | None:
    """Return the plan that scores best over all rows, with its function fitted on all of them.

    None where that has too many values for its mechanism. The plans that one split ranks first are
    compared, and its held-out rows are one of the folds. The better score wins, not the simpler
    function: simpler functions lose more than chance gives the others.

    Args:
        choice: the choice on one split, with plans near the best.
        data: rows with labels, as they were split for it.
        fit, score: the estimator's fits and scores.
    """
    assert data.train_labels is not None
    assert data.held_labels is not None
    rows = np.concatenate([data.train, data.held])
    labels = np.concatenate([data.train_labels, data.held_labels])
    folds = np.full(len(rows), -1)
    folds[: len(data.train)] = balanced_folds(data.train_labels, _folds(data))
    scored = []
    for candidate, plan in choice.near[:_FINALISTS]:
        right = plan.utility * len(data.held)
        for fold in range(_folds(data)):
            held = folds == fold
            cut = CalibrationData(rows[~held], rows[held], labels[~held], labels[held])
            again = fit(candidate, cut)
            if again is not None:
                right += score(again, cut, plan.path).plan.utility * int(held.sum())
        scored.append((candidate, replace(plan, utility=float(right / len(rows)))))
    scored.sort(key=lambda pair: -pair[1].utility)
    best, plan = scored[0]
    everything = CalibrationData(rows, rows, labels, labels)
    whole = fit(best, everything)
    if whole is None:
        return None
    found = score(whole, everything, plan.path)
    released = replace(found.plan, utility=plan.utility)
    others = choice.considered[len(scored) :]
    considered = (released, *(plan for _, plan in scored[1:]), *others)
    return replace(found, plan=released, considered=considered)


def _folds(data: CalibrationData) -> int:
    """Return the number of parts as large as the held-out one that training rows make."""
    return round(len(data.train) / len(data.held))
