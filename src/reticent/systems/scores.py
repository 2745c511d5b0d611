"""The worth of answers to whoever reads labels from them. More is better.

Every measure is defined once here, on weighted rows: a row for each prediction, or for each output
of a channel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of
from reticent.core.errors import InvalidInput

_FLOOR = 1e-12
_LEAST = 1e-6
"""Least probability that the log loss of a criterion counts, so that one answer cannot outweigh all
others. Tables of a channel have no such answers."""
_SMOOTHING = 0.5  # rows of each label, shared out over the bins


def accuracy(labels: Integers, weights: Array) -> float:
    """Return the share that is right.

    Args:
        labels: shape (m,), the label that each row is answered by.
        weights: shape (m, classes), how often each row meets each label, at least 0.
    """
    return float(weights[np.arange(len(labels)), labels].sum() / weights.sum())


def balanced_accuracy(labels: Integers, weights: Array) -> float:
    """Return the mean, over the labels that occur, of the share of each that is answered right.

    The caller chooses the label that answers a row: the one that is released, or ``lifted``.

    Args:
        labels, weights: arguments of ``accuracy``.
    """
    right = np.zeros(weights.shape)
    right[np.arange(len(labels)), labels] = 1.0
    often = weights.sum(axis=0)
    there = often > 0
    return float(((right * weights).sum(axis=0)[there] / often[there]).mean())


def lifted(probabilities: Array, shares: Array) -> Integers:
    """Return for each row the label whose probability exceeds its share by the largest factor: the
    "threshold at prevalence", which balanced accuracy asks for.
    """
    return np.asarray((probabilities / shares).argmax(axis=1))


def log_score(probabilities: Array, weights: Array, *, floor: float = _FLOOR) -> float:
    """Return the mean logarithm of the true label's probability, in nats: minus the log loss.

    Args:
        probabilities: shape (m, classes).
        weights: argument of ``accuracy``.
        floor: least probability. Smaller ones count as this.
    """
    return float((weights * np.log(np.maximum(probabilities, floor))).sum() / weights.sum())


def information(probabilities: Array, weights: Array, *, floor: float = _FLOOR) -> float:
    """Return nats that the rows tell about the label: its entropy less the log loss.

    It is below 0 where the shares of labels alone say more.

    Args:
        probabilities, weights, floor: arguments of ``log_score``.
    """
    often = weights.sum(axis=0) / weights.sum()
    often = often[often > 0]
    entropy = -float((often * np.log(often)).sum())
    return entropy + log_score(probabilities, weights, floor=floor)


def roc_auc(probabilities: Array, weights: Array) -> float:
    """Return the area under the ROC curve.

    Of several labels it is the mean over those that occur, each against the rest. Where nothing is
    to be told apart it is 0.5.
    """
    often = weights.sum(axis=0)
    labels = [1] if len(often) == 2 else np.flatnonzero(often).tolist()
    if np.count_nonzero(often) < 2:
        return 0.5
    rest = [weights.sum(axis=1) - weights[:, label] for label in labels]
    areas = [
        _area(probabilities[:, label], weights[:, label], others)
        for label, others in zip(labels, rest, strict=True)
    ]
    return float(np.mean(areas))


def _area(scores: Array, positive: Array, negative: Array) -> float:
    """Return the probability that a positive case scores above a negative one, ties counting
    half.
    """
    _, group = np.unique(scores, return_inverse=True)
    ups = np.bincount(group, weights=positive)
    downs = np.bincount(group, weights=negative)
    below = np.cumsum(downs) - downs
    return float((ups * (below + 0.5 * downs)).sum() / (ups.sum() * downs.sum()))


def brier(probabilities: Array, weights: Array) -> float:
    """Return 1 less half the squared distance from the true label's certainty, on average."""
    squares = (probabilities**2).sum(axis=1, keepdims=True) - 2.0 * probabilities + 1.0
    return float(1.0 - 0.5 * (weights * squares).sum() / weights.sum())


SCORINGS = ("information", "accuracy", "balanced_accuracy", "auc")
"""What a release may be chosen by. Information, the default, tells apart mechanisms that all reach
the majority rate."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Worth of predictions from answers, where probabilities are all that is known.

    Attributes:
        information: result of ``information``.
        accuracy: accuracy of the likeliest label.
        balanced_accuracy: balanced accuracy of the ``lifted`` label.
        auc: result of ``roc_auc``.
    """

    information: float
    accuracy: float
    balanced_accuracy: float
    auc: float

    def of(self, scoring: str) -> float:
        """Return the one called ``scoring``."""
        value: float = getattr(self, one_of(scoring, SCORINGS, name="scoring"))
        return value


def prediction_scores(
    probabilities: npt.ArrayLike, weights: npt.ArrayLike, *, shares: npt.ArrayLike | None = None
) -> Scores:
    """Return the scores of predicted probabilities.

    An answer that was withheld is a row of the label shares: it says nothing.

    Args:
        probabilities: shape (m, labels), rows sum to 1.
        weights: shape (m, labels), how often each row of probabilities meets each label, at least
            0: one-hot labels for single predictions, exact shares for all outputs of a channel.
        shares: shape (labels,), label shares that ``lifted`` compares with: those known when
            predicting. Default: those of ``weights``.

    Raises:
        InvalidInput: shapes that do not fit, or a label that has no weight.

    Example:
        >>> prediction_scores([[0.9, 0.1], [0.4, 0.6]], [[1, 0], [0, 1]]).accuracy
        1.0
    """
    p, w = np.asarray(probabilities, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if p.ndim != 2 or p.shape != w.shape or not p.shape[1] >= 1:
        raise InvalidInput(
            f"weights: expected the shape of probabilities, {p.shape}, with a column for each "
            f"label, got {w.shape}"
        )
    w = w / w.sum()
    often = w.sum(axis=0)
    if not (often > 0).all():
        raise InvalidInput("weights: expected every label to occur")
    known = often if shares is None else np.asarray(shares, dtype=np.float64)
    return Scores(
        information=information(p, w),
        accuracy=accuracy(p.argmax(axis=1), w),
        balanced_accuracy=balanced_accuracy(lifted(p, known), w),
        auc=roc_auc(p, w),
    )


def channel_scores(joint: npt.ArrayLike) -> Scores:
    """Return the exact scores of a server that knows how likely each output and label are together.

    Args:
        joint: shape (outputs, labels), probabilities of output and label together, such as
            ``channel.matrix.T @ bins_and_labels``.

    Example:
        >>> round(channel_scores([[0.4, 0.1], [0.1, 0.4]]).accuracy, 9)
        0.8
    """
    table = np.asarray(joint, dtype=np.float64)
    totals = table.sum(axis=1, keepdims=True)
    prior = table.sum(axis=0) / table.sum()
    posterior = np.where(totals > 0, table / np.where(totals > 0, totals, 1.0), prior)
    return prediction_scores(posterior, table)


def joint_of(members: Integers, labels: Integers, *, bins: int) -> Array:
    """Return shares of rows in each bin with each label, shape (bins, labels that occur, at least
    2), each label's smoothed by half a row spread evenly over the bins.

    Args:
        members: shape (n,), the bin of each row, from 0 to bins - 1.
        labels: shape (n,), integers.
        bins: number of bins.
    """
    classes, places = np.unique(labels, return_inverse=True)
    joint = np.full((bins, max(2, len(classes))), _SMOOTHING / bins)
    np.add.at(joint, (members, places), 1.0)
    return np.asarray(joint / joint.sum())


def probabilities_of_labels(labels: Integers, truth: Integers, *, classes: int) -> Array:
    """Return what a released label says about the true one: shares among the rows of that label.

    Every second row is read by the counts of the others, so that no row has a part in its own
    probability. Whoever has labelled public rows can do the same with released labels.

    Args:
        labels: shape (q,), released.
        truth: shape (q,).
        classes: number of labels.

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


@dataclass(frozen=True)
class Predictions:
    """The answers of a method for some rows.

    Attributes:
        labels: shape (q,), 0 to classes - 1.
        probabilities: shape (q, classes), rows that sum to 1, or None where only labels are
            released.
    """

    labels: Integers
    probabilities: Array | None = None

    @classmethod
    def of(cls, probabilities: Array) -> Predictions:
        """Return predictions whose labels are the most probable ones."""
        return cls(probabilities.argmax(axis=1), probabilities)


def row_scores(
    name: str,
    predictions: Predictions,
    truth: Integers,
    *,
    classes: int,
    costs: Array | None = None,
) -> Array:
    """Return a value for each row whose mean is a score and whose spread is its standard error.

    The mean is what ``criterion_of(name).of`` gives. The standard deviation of the values over the
    square root of their number is the standard error of that mean over rows, labels held fixed.
    The difference of two methods' values is that of their difference. Values of balanced accuracy
    and of the area are those of its linearisation, by rows of one label.

    Args:
        name: name of a criterion, or "cost": less is lost by a label of least expected cost.
        predictions: predictions for q rows.
        truth: shape (q,), 0 to classes - 1.
        classes: the number of labels.
        costs: shape (classes, classes), the cost of answering column j where row i is true, for
            "cost" only.

    Returns:
        Shape (q,).

    References:
        - DeLong, DeLong and Clarke-Pearson (1988), "Comparing the areas under two or more
          correlated receiver operating characteristic curves: a nonparametric approach",
          doi:10.2307/2531595.

    Example:
        >>> sure = Predictions.of(np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]))
        >>> float(row_scores("balanced_accuracy", sure, np.array([0, 0, 1]), classes=2).mean())
        0.25
    """
    found = predictions.probabilities
    if found is None:
        found = probabilities_of_labels(predictions.labels, truth, classes=classes)
    right: Array = (predictions.labels == truth).astype(np.float64)
    if name == "accuracy":
        return right
    if name == "cost":
        assert costs is not None
        return np.asarray(-costs[truth, (found @ costs).argmin(axis=1)])
    if name == "balanced_accuracy":
        return _by_label([(right, truth == label) for label in np.unique(truth)])
    if name == "roc_auc":
        labels = np.array([1]) if classes == 2 else np.unique(truth)
        if len(np.unique(truth)) < 2:
            return np.full(len(truth), 0.5)
        return np.asarray(
            np.mean([_area_by_row(found[:, label], truth == label) for label in labels], axis=0)
        )
    if name == "brier":
        squares = (found**2).sum(axis=1) - 2.0 * found[np.arange(len(truth)), truth] + 1.0
        return np.asarray(1.0 - 0.5 * squares)
    logs = np.log(np.maximum(found[np.arange(len(truth)), truth], _LEAST))
    if name == "information":
        often = np.bincount(truth, minlength=classes) / len(truth)
        return np.asarray(logs - np.log(often[truth]))
    return np.asarray(logs)


def _by_label(parts: list[tuple[Array, npt.NDArray[np.bool_]]]) -> Array:
    """Return values by row whose mean is the mean, over parts, of the mean within each."""
    means = [float(values[part].mean()) for values, part in parts]
    found = np.full(len(parts[0][0]), np.mean(means))
    for (values, part), mean in zip(parts, means, strict=True):
        found[part] += (values[part] - mean) * len(found) / (len(parts) * part.sum())
    return found


def _area_by_row(scores: Array, positive: npt.NDArray[np.bool_]) -> Array:
    """Return values by row whose mean is the area under one curve."""
    ups, downs = np.sort(scores[positive]), np.sort(scores[~positive])
    share = np.empty(len(scores))
    for own, other, sign in ((positive, downs, 1.0), (~positive, ups, -1.0)):
        low, high = (np.searchsorted(other, scores[own], side=side) for side in ("left", "right"))
        below = 0.5 * (low + high) / len(other)
        share[own] = below if sign > 0 else 1.0 - below
    area = float(share[positive].mean())
    found = np.full(len(scores), area)
    for own in (positive, ~positive):
        found[own] += (share[own] - area) * len(scores) / own.sum()
    return found


@dataclass(frozen=True)
class Criterion:
    """The measure by which a plan compares methods.

    Attributes:
        name: its name, as users write it.
        unit: meaning of one unit of it, in words.
        proper: whether true probabilities are the best answer that there is.
        utility: the score of probabilities, the labels that are released with them, and weights.
        share: the score on a scale from 0 to 1, for charts.
        best: the score of an answer that is always right and sure.
    """

    name: str
    unit: str
    proper: bool
    utility: Callable[[Array, Integers, Array], float]
    share: Callable[[float], float]
    best: float = 1.0

    def of(self, predictions: Predictions, truth: Integers, *, classes: int) -> float:
        """Return the score of ``predictions``. Bare labels are read as ``probabilities_of_labels``
        does.

        Args:
            predictions: predictions for q rows.
            truth: shape (q,), 0 to classes - 1.
            classes: number of labels.
        """
        found = predictions.probabilities
        if found is None:
            found = probabilities_of_labels(predictions.labels, truth, classes=classes)
        return self.utility(found, predictions.labels, np.eye(found.shape[1])[truth])

    def __reduce__(self) -> tuple[Any, ...]:
        """A worker looks it up by its name."""
        return criterion_of, (self.name,)


def criterion_of(name: str) -> Criterion:
    """Return the criterion called ``name``.

    Raises:
        UnknownName: there is none of that name.

    Example:
        >>> sure = Predictions.of(np.array([[0.9, 0.1], [0.2, 0.8]]))
        >>> criterion_of("accuracy").of(sure, np.array([0, 0]), classes=2)
        0.5
    """
    return CRITERIA[one_of(name, CRITERIA, name="scoring")]


def _as_it_is(utility: float) -> float:
    return min(max(utility, 0.0), 1.0)


def _geometric(utility: float) -> float:
    return math.exp(min(utility, 0.0))


CRITERIA = {
    one.name: one
    for one in (
        Criterion(
            "log_loss", "minus nats per answer", True,
            lambda p, labels, w: log_score(p, w, floor=_LEAST), _geometric, 0.0,
        ),
        Criterion(
            "brier", "1 - half the squared error", True, lambda p, labels, w: brier(p, w), _as_it_is
        ),
        Criterion(
            "information", "nats per answer", True,
            lambda p, labels, w: information(p, w, floor=_LEAST), _as_it_is, math.inf,
        ),
        Criterion(
            "accuracy", "share right", False, lambda p, labels, w: accuracy(labels, w), _as_it_is
        ),
        Criterion(
            "balanced_accuracy", "mean share right", False,
            lambda p, labels, w: balanced_accuracy(labels, w), _as_it_is,
        ),
        Criterion(
            "roc_auc", "area under the curve", False, lambda p, labels, w: roc_auc(p, w), _as_it_is
        ),
    )
}  # fmt: skip
"""Criteria of plans by name; the first is the default."""

DEFAULT = next(iter(CRITERIA))
