"""A student against its own labels: better, as good, worse."""

from __future__ import annotations

import numpy as np

from reticent.systems.private_knn.checked_student import (
    ValidationRows,
    checked_student,
)
from reticent.systems.private_knn.inputs import feature_map_of
from reticent.training.nearest_labels import NearestLabels
from reticent.training.surest_student import surest_student

IDENTITY = feature_map_of(None, (2,))


def _lesson(wrong: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 2
    rows = rng.normal(size=(300, 2))
    rows[:, 0] += 4.0 * truth
    return rows, truth, np.where(rng.random(300) < wrong, 1 - truth, truth)


def test_a_student_that_corrects_its_labels_is_kept() -> None:
    rows, truth, released = _lesson(0.25)
    student = surest_student(rows[:200], released[:200], classes=2, seed=0)
    own = NearestLabels.of(rows[:200], released[:200], classes=2)
    kept, check = checked_student(student, own, ValidationRows(rows[200:], truth[200:]), IDENTITY)
    assert kept is student
    assert check.kept
    assert check.student > 0.9 > check.labels
    assert check.student == (student.predict(rows[200:]) == truth[200:]).mean()
    assert check.labels == (own.predict(rows[200:]) == truth[200:]).mean()


def test_a_student_that_is_worse_or_as_good_gives_way_to_its_labels() -> None:
    rows, truth, _ = _lesson(0.0)
    # A label in the middle of the other one's rows: no line gets it right, its neighbours do.
    inside = np.abs(rows[:, 1]) < 0.5
    student = surest_student(rows[:200], inside[:200].astype(int), classes=2, seed=0)
    own = NearestLabels.of(rows[:200], inside[:200].astype(int), classes=2)
    held = ValidationRows(rows[200:], inside[200:].astype(np.int64))
    kept, check = checked_student(student, own, held, IDENTITY)
    assert kept is own
    assert check.student < check.labels
    constant = surest_student(rows[:200], np.zeros(200, dtype=int), classes=2, seed=0)
    same = NearestLabels.of(rows[:200], np.zeros(200, dtype=int), classes=2)
    kept, check = checked_student(constant, same, ValidationRows(rows[200:], truth[200:]), IDENTITY)
    assert check.student == check.labels
    assert kept is same
