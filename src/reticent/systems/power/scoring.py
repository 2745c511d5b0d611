"""What answers are worth to whoever predicts labels from them: accuracy, balanced accuracy, ROC
AUC and information in nats, by one function.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import one_of
from reticent.core.errors import InvalidInput

Labels = npt.NDArray[np.int64]

SCORINGS = ("information", "accuracy", "balanced_accuracy", "auc")
"""What a release may be chosen by. Information, the default, tells apart mechanisms that all reach
the majority rate."""

_FLOOR = 1e-12
_SMOOTHING = 0.5  # rows of each label, shared out over the bins


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Worth of predictions from answers; more is better in each.

    Attributes:
        information: nats that answers, or probabilities computed from them, tell about the label:
            its entropy less the log loss. Below 0 where the shares of labels alone say more.
        accuracy: of the likeliest label.
        balanced_accuracy: mean over labels of the share that is found, predicting the label whose
            probability exceeds its share by the largest factor ("threshold at prevalence").
        auc: area under the ROC curve; several labels: mean over labels of each against the rest.
    """

    information: float
    accuracy: float
    balanced_accuracy: float
    auc: float

    def of(self, scoring: str) -> float:
        """The one called ``scoring``."""
        value: float = getattr(self, one_of(scoring, SCORINGS, name="scoring"))
        return value


def prediction_scores(
    probabilities: npt.ArrayLike, weights: npt.ArrayLike, *, shares: npt.ArrayLike | None = None
) -> Scores:
    """Scores of predicted probabilities.

    An answer that was withheld is a row of the label shares: it says nothing.

    Args:
        probabilities: shape (m, labels), rows sum to 1.
        weights: shape (m, labels), how often each row of probabilities meets each label, at least
            0: one-hot labels for single predictions, exact shares for all outputs of a channel.
        shares: shape (labels,), label shares that "threshold at prevalence" compares with: those
            known when predicting. Default: those of ``weights``.

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
    if p.shape[1] == 1:  # where only one label occurs there is nothing to tell apart
        lost = float((w * np.log(np.maximum(p, _FLOOR))).sum())
        return Scores(information=lost, accuracy=1.0, balanced_accuracy=1.0, auc=0.5)
    prior = w.sum(axis=0)
    if not (prior > 0).all():
        raise InvalidInput("weights: expected every label to occur")
    known = prior if shares is None else np.asarray(shares, dtype=np.float64)
    rows = np.arange(len(p))
    entropy = -float((prior * np.log(prior)).sum())
    loss = -float((w * np.log(np.maximum(p, _FLOOR))).sum())
    found = np.zeros(p.shape)
    found[rows, (p / known).argmax(axis=1)] = 1.0
    areas = [
        _area(p[:, label], w[:, label], _others(w, label))
        for label in (range(1, 2) if p.shape[1] == 2 else range(p.shape[1]))
    ]
    return Scores(
        information=entropy - loss,
        accuracy=float(w[rows, p.argmax(axis=1)].sum()),
        balanced_accuracy=float(((found * w).sum(axis=0) / prior).mean()),
        auc=float(np.mean(areas)),
    )


def channel_scores(joint: npt.ArrayLike) -> Scores:
    """Exact scores of a server that knows how likely each output and label are together.

    Args:
        joint: shape (outputs, labels), probabilities of output and label together, such as
            ``channel.matrix.T @ bins_and_labels``.

    Example:
        >>> channel_scores([[0.4, 0.1], [0.1, 0.4]]).accuracy
        0.8
    """
    table = np.asarray(joint, dtype=np.float64)
    totals = table.sum(axis=1, keepdims=True)
    prior = table.sum(axis=0) / table.sum()
    posterior = np.where(totals > 0, table / np.where(totals > 0, totals, 1.0), prior)
    return prediction_scores(posterior, table)


def joint_of(members: Labels, labels: Labels, *, bins: int) -> Array:
    """Shares of rows in each bin with each label, shape (bins, labels that occur, at least 2), each
    label's smoothed by half a row spread evenly over the bins.

    Args:
        members: shape (n,), the bin of each row, from 0 to bins - 1.
        labels: shape (n,), integers.
        bins: how many there are.
    """
    classes, places = np.unique(labels, return_inverse=True)
    joint = np.full((bins, max(2, len(classes))), _SMOOTHING / bins)
    np.add.at(joint, (members, places), 1.0)
    return np.asarray(joint / joint.sum())


def _others(weights: Array, label: int) -> Array:
    """Weight of all labels but ``label`` in each row."""
    return np.asarray(weights.sum(axis=1) - weights[:, label])


def _area(scores: Array, positive: Array, negative: Array) -> float:
    """Probability that a positive case scores above a negative one, ties counting half."""
    _, group = np.unique(scores, return_inverse=True)
    ups = np.bincount(group, weights=positive)
    downs = np.bincount(group, weights=negative)
    below = np.cumsum(downs) - downs
    return float((ups * (below + 0.5 * downs)).sum() / (ups.sum() * downs.sum()))
