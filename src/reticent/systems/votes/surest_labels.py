"""A linear support vector machine on the surest labels that a released model gives public rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.svm import LinearSVC

from reticent.core.arrays import Array
from reticent.training.public_space import INTERCEPT, LENGTH, directions_of

_FEWEST = 2
_TEMPERATURES = 2.0 ** np.arange(-3, 7)


@dataclass(frozen=True, eq=False)
class SurestLabels:
    """The student that ``surest_labels`` makes.

    Attributes:
        weights: shape (m + 1, classes), weights of directions of length 1.
    """

    weights: Array

    def scores(self, points: Array) -> Array:
        """Return logarithms of probabilities up to a constant, shape (n, classes)."""
        return np.asarray(directions_of(points, intercept=INTERCEPT) / LENGTH @ self.weights)


def surest_labels(points: Array, scores: Array, *, share: float) -> SurestLabels | None:
    """Return the student of the ``share`` of public rows that the model is surest of.

    It sees public rows and what a released model says of them, nothing else: post-processing.

    Args:
        points: shape (n, m), public rows in the public space.
        scores: shape (n, classes), the model's, logarithms of probabilities up to a constant.
        share: share of the rows, in (0, 1].

    Returns:
        The student, or None where the surest labels are all alike, or fewer than two.
    """
    ranked = np.sort(scores, axis=1)
    surest = np.argsort(ranked[:, -2] - ranked[:, -1], kind="stable")
    surest = surest[: max(_FEWEST, round(share * len(points)))]
    labels = scores.argmax(axis=1)
    found = np.unique(labels[surest])
    if len(found) < 2:
        return None
    directions = directions_of(points, intercept=INTERCEPT) / LENGTH
    machine = LinearSVC(C=1.0, fit_intercept=False, dual=True, random_state=0, max_iter=5000)
    machine.fit(directions[surest], labels[surest])
    columns = np.vstack([-machine.coef_, machine.coef_]) if len(found) == 2 else machine.coef_
    weights = np.zeros((directions.shape[1], scores.shape[1]))
    margins = directions @ columns.T
    # A label that no sure row has is never given: it stays below all others.
    weights[:, found] = columns.T
    absent = np.setdiff1d(np.arange(scores.shape[1]), found)
    if len(absent):
        weights[-1, absent] = (margins.min() - 1.0) / directions[:, -1].min()
    margins = directions @ weights
    losses = [_log_loss(margins * scale, labels) for scale in _TEMPERATURES]
    return SurestLabels(weights * _TEMPERATURES[int(np.argmin(losses))])


def _log_loss(scores: Array, labels: npt.NDArray[np.int64]) -> float:
    spread = np.logaddexp.reduce(scores, axis=1)
    return float((spread - scores[np.arange(len(labels)), labels]).mean())
