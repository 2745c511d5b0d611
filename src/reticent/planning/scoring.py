"""What an answer is worth, by the criterion that the user names; higher is better."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of
from reticent.planning.tasks import Predictions

_LEAST = 1e-6
"""Least probability that log loss counts, so that one answer cannot outweigh all others."""


@dataclass(frozen=True)
class Scoring:
    """A criterion.

    Attributes:
        name: as users write it.
        unit: what one unit of it is, in words.
        proper: whether true probabilities are the best answer that there is.
        utility: the score of probabilities of shape (q, classes), labels of shape (q,) that are
            released with them, and the true labels of shape (q,).
        share: the score on a scale from 0 to 1, for charts.
        best: the score of an answer that is always right and sure.
    """

    name: str
    unit: str
    proper: bool
    utility: Callable[[Array, Integers, Integers], float]
    share: Callable[[float], float]
    best: float = 1.0

    def of(self, predictions: Predictions, truth: Integers, *, classes: int) -> float:
        """The score of ``predictions``; bare labels are read as ``probabilities_of_labels`` does.

        Args:
            predictions: for q rows.
            truth: shape (q,), 0 to classes - 1.
            classes: how many labels there are.
        """
        found = predictions.probabilities
        if found is None:
            found = probabilities_of_labels(predictions.labels, truth, classes=classes)
        return self.utility(found, predictions.labels, truth)


def scoring_of(name: str) -> Scoring:
    """The criterion called ``name``.

    Raises:
        UnknownName: there is none of that name.

    Example:
        >>> sure = Predictions.of(np.array([[0.9, 0.1], [0.2, 0.8]]))
        >>> scoring_of("accuracy").of(sure, np.array([0, 0]), classes=2)
        0.5
    """
    return SCORINGS[one_of(name, SCORINGS, name="scoring")]


def probabilities_of_labels(labels: Integers, truth: Integers, *, classes: int) -> Array:
    """What a released label says about the true one: shares among the rows of that label.

    Every second row is read by the counts of the others, so that no row has a part in its own
    probability. Whoever has labelled public rows can do the same with released labels.

    Args:
        labels: shape (q,), released.
        truth: shape (q,).
        classes: how many labels there are.

    Example:
        >>> probabilities_of_labels(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), classes=2)[0]
        array([0.75, 0.25])
    """
    found = np.empty((len(labels), classes))
    halves = np.arange(len(labels)) % 2 == 0
    for own, other in ((halves, ~halves), (~halves, halves)):
        counts = np.full((classes, classes), 1.0 / classes)
        np.add.at(counts, (labels[other], truth[other]), 1.0)
        found[own] = (counts / counts.sum(axis=1, keepdims=True))[labels[own]]
    return found


def _accuracy(probabilities: Array, labels: Integers, truth: Integers) -> float:
    return float((labels == truth).mean())


def _balanced_accuracy(probabilities: Array, labels: Integers, truth: Integers) -> float:
    return float(np.mean([(labels[truth == label] == label).mean() for label in np.unique(truth)]))


def _log_loss(probabilities: Array, labels: Integers, truth: Integers) -> float:
    kept = np.maximum(probabilities[np.arange(len(truth)), truth], _LEAST)
    return float(np.log(kept).mean())


def _brier(probabilities: Array, labels: Integers, truth: Integers) -> float:
    aims = np.eye(probabilities.shape[1])[truth]
    return float(1.0 - 0.5 * ((probabilities - aims) ** 2).sum(axis=1).mean())


def _information(probabilities: Array, labels: Integers, truth: Integers) -> float:
    shares = np.bincount(truth, minlength=probabilities.shape[1]) / len(truth)
    entropy = -float(sum(share * math.log(share) for share in shares if share > 0))
    return entropy + _log_loss(probabilities, labels, truth)


def _roc_auc(probabilities: Array, labels: Integers, truth: Integers) -> float:
    areas = []
    for label in np.unique(truth):
        own = truth == label
        if own.all():
            return 0.5
        ranks = rankdata(probabilities[:, label])
        wins = ranks[own].sum() - own.sum() * (own.sum() + 1) / 2
        areas.append(wins / (own.sum() * (~own).sum()))
    return float(np.mean(areas))


def _as_it_is(utility: float) -> float:
    return min(max(utility, 0.0), 1.0)


def _geometric(utility: float) -> float:
    return math.exp(min(utility, 0.0))


SCORINGS = {
    scoring.name: scoring
    for scoring in (
        Scoring("log_loss", "minus nats per answer", True, _log_loss, _geometric, 0.0),
        Scoring("brier", "1 - half the squared error", True, _brier, _as_it_is),
        Scoring("information", "nats per answer", True, _information, _as_it_is, math.inf),
        Scoring("accuracy", "share right", False, _accuracy, _as_it_is),
        Scoring("balanced_accuracy", "mean share right", False, _balanced_accuracy, _as_it_is),
        Scoring("roc_auc", "area under the curve", False, _roc_auc, _as_it_is),
    )
}
"""Criteria by name; the first is the default."""

DEFAULT = next(iter(SCORINGS))
