"""The student on the surest labels: what it leaves out, and against a plain machine."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from papers.private_knn.surest_student import surest_student

X, TRUTH = load_digits(return_X_y=True)
TAUGHT, UNSEEN = slice(0, 600), slice(600, None)


def _released(wrong: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    labels = TRUTH[TAUGHT].copy()
    moved = rng.random(len(labels)) < wrong
    labels[moved] = (labels[moved] + rng.integers(1, 10, size=int(moved.sum()))) % 10
    return labels


def test_the_labels_left_out_are_mostly_the_wrong_ones() -> None:
    labels = _released(0.1)
    student = surest_student(X[TAUGHT], labels, classes=10, seed=0)
    assert student.kept.sum() == round(0.88 * 600)
    wrong = labels != TRUTH[TAUGHT]
    assert (wrong & ~student.kept).sum() > 0.8 * wrong.sum()
    assert (labels == TRUTH[TAUGHT])[student.kept].mean() > 0.97
    plain = surest_student(X[TAUGHT], labels, classes=10, share=1.0, seed=0)
    assert plain.kept.all()
    right = [(one.predict(X[UNSEEN]) == TRUTH[UNSEEN]).mean() for one in (student, plain)]
    assert right[0] > right[1]
