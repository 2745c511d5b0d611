"""Which of the codes that were compared on public rows is released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.systems.power.channels import MOST_LOST, Channel
from reticent.systems.power.query import TIE
from reticent.systems.power.score_query import ScoreBins
from reticent.systems.scores import Scores
from reticent.training.public_models import PublicModel

Labels = npt.NDArray[np.int64]

_EXCUSED = 0.5
"""Standard errors of a difference that count as none where a code loses against the best."""


@dataclass(frozen=True, eq=False)
class FittedScores:
    """A public model and the scores that it, or its like, gives rows it did not learn from.

    Attributes:
        model: learnt from all public rows.
        scores: shape (n, scores), of models that learnt from the other folds.
    """

    model: PublicModel
    scores: Array


@dataclass(frozen=True, eq=False)
class RowScores:
    """What each public row adds to the scores of a code, whose means over rows they are.

    Attributes:
        accuracy: shape (n,), how likely the likeliest label given the answer is the row's own.
        balanced_accuracy: shape (n,), the same of the label that exceeds its share by the largest
            factor, over the share of the row's label and the number of labels.
        information: shape (n,), nats that answers tell about the row's label.
    """

    accuracy: Array
    balanced_accuracy: Array
    information: Array

    @classmethod
    def nothing(cls, count: int) -> RowScores:
        """Zeros, to be filled in."""
        return cls(np.zeros(count), np.zeros(count), np.zeros(count))

    def fill(self, rows: npt.NDArray[np.bool_], others: RowScores) -> None:
        """Puts scores of some rows, in their order, where ``rows`` says."""
        for name in ("accuracy", "balanced_accuracy", "information"):
            getattr(self, name)[rows] = getattr(others, name)

    def error(self, other: RowScores, *, scoring: str) -> float:
        """Standard error of the difference from ``other`` on the same rows."""
        gains: Array = getattr(self, scoring) - getattr(other, scoring)
        return float(gains.std()) / math.sqrt(len(gains))


@dataclass(frozen=True, eq=False)
class ScoreCode:
    """One complete choice.

    Attributes:
        fitted: the model.
        bins: of its scores.
        channel: from bins to outputs, with its exact scores.
        rows: of the public rows.
        plain: whether it is randomised response on the side of the label shares.
    """

    fitted: FittedScores
    bins: ScoreBins
    channel: Channel
    rows: RowScores
    plain: bool = False


def row_scores(table: Array, joint: Array, bins_of: Labels, labels: Labels) -> RowScores:
    """What each row adds to the scores of a channel, exactly over its noise.

    Args:
        table: shape (bins, outputs), probabilities.
        joint: shape (bins, labels), probabilities of bin and label together.
        bins_of: shape (n,), the bin of each row.
        labels: shape (n,), the column of each row's label in ``joint``.
    """
    together, prior = table.T @ joint, joint.sum(axis=0) / joint.sum()
    chances = np.maximum(together, np.finfo(np.float64).tiny)
    chances = chances / chances.sum(axis=1, keepdims=True)
    every = np.eye(len(prior))
    likeliest, risen = chances.argmax(axis=1), (chances / prior).argmax(axis=1)
    return RowScores(
        *(
            np.asarray((table @ worth)[bins_of, labels])
            for worth in (
                every[likeliest],
                every[risen] / (prior * len(prior)),
                np.log(chances / prior),
            )
        )
    )


def informative(codes: Sequence[ScoreCode]) -> list[ScoreCode]:
    """Codes that information may choose among.

    Their accuracy is next to that of the most accurate one, and their balanced accuracy next to
    that of the most balanced one, or, where none of the former comes so near, of the most balanced
    of these.

    Args:
        codes: of the same rows.
    """
    accurate = nearly_best(codes, scoring="accuracy")
    most = max(code.channel.scores.balanced_accuracy for code in codes)
    balanced = nearly_best(accurate, scoring="balanced_accuracy", best=most)
    return balanced or nearly_best(accurate, scoring="balanced_accuracy")


def nearly_best(
    codes: Sequence[ScoreCode], *, scoring: str, best: float | None = None
) -> list[ScoreCode]:
    """Codes whose score is below that of the best one by at most what ``MOST_LOST`` says, or half
    a standard error of the difference.

    Information alone gives up any accuracy for a little more of it, and on few rows the code that
    looks best is that by chance.

    Args:
        codes: of the same rows.
        scoring: "accuracy" or "balanced_accuracy".
        best: the score to be compared with; None for the highest of ``codes``.
    """
    top = max(codes, key=lambda code: code.channel.scores.of(scoring))
    wanted = top.channel.scores.of(scoring) if best is None else best
    return [
        code
        for code in codes
        if wanted - code.channel.scores.of(scoring)
        <= max(MOST_LOST[scoring], _EXCUSED * top.rows.error(code.rows, scoring=scoring))
    ]


def ordered_codes(codes: Sequence[ScoreCode], *, scoring: str) -> list[ScoreCode]:
    """The best code of each kind of model and channel, in the order in which they are taken.

    By information, where labels are two, the first is, of those that tell at most one standard
    error less than the best, the plain one, or else that of the highest balanced accuracy and AUC,
    in sum. Of many codes that are worth the same the one that looks best is that by chance. Where
    labels are more, a code that keeps the accuracy names the commonest, and loses most of what
    could be told of the others: only nats count.

    Args:
        codes: of the same rows.
        scoring: what they are compared by.
    """
    informing = scoring == "information" and codes[0].fitted.scores.shape[1] == 1
    allowed = informative(codes) if informing else codes
    best: dict[tuple[str, str], ScoreCode] = {}
    for code in allowed:
        kind = _kind(code)
        if kind not in best or better(code, best[kind], scoring=scoring):
            best[kind] = code
    chosen: list[ScoreCode] = []
    for code in best.values():
        place = sum(not better(code, other, scoring=scoring) for other in chosen)
        chosen.insert(place, code)
    if informing:
        level = [code for code in allowed if _as_informative(code, chosen[0])]
        plain = [code for code in level if code.plain]
        first = max(plain, key=_told) if plain else max(level, key=_both)
        chosen = [first, *(code for code in chosen if _kind(code) != _kind(first))]
    return chosen


def _kind(code: ScoreCode) -> tuple[str, str]:
    return code.fitted.model.kind, code.channel.response


def _told(code: ScoreCode) -> float:
    return code.channel.scores.information


def _both(code: ScoreCode) -> float:
    return code.channel.scores.balanced_accuracy + code.channel.scores.auc


def _as_informative(code: ScoreCode, best: ScoreCode) -> bool:
    return _told(best) - _told(code) <= best.rows.error(code.rows, scoring="information")


def better(code: ScoreCode, other: ScoreCode, *, scoring: str) -> bool:
    """Whether ``code`` is worth more; ties are broken by information."""
    return is_above(code.channel.scores, other.channel.scores, scoring=scoring)


def is_above(scores: Scores, others: Scores, *, scoring: str) -> bool:
    """Whether scores are higher than others; ties are broken by information."""
    gain = scores.of(scoring) - others.of(scoring)
    return gain > TIE or (gain > -TIE and scores.information > others.information + TIE)
