"""The worth of releases on public rows that were held out, and how far two of them are apart by
chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from reticent.core.arrays import Array, Integers
from reticent.systems.record_labels import balanced_folds
from reticent.systems.scores import Scores, prediction_scores

Release = TypeVar("Release")

SERVER: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 8,
    "max_iter": 60,
    "l2_regularization": 1.0,
    "early_stopping": False,
}
"""The booster that stands for the server's model, the same for all releases."""

GROUPS = 20
"""Of held-out rows, each of which is left out once."""

ERRORS = 2.0
"""Standard errors of the difference up to which two releases count as worth the same."""


@dataclass(frozen=True, eq=False)
class HeldScores:
    """Scores of one release on held-out rows.

    Attributes:
        scores: scores on all of them.
        without: shape (GROUPS,), the score that is asked for, on all but each group.
    """

    scores: Scores
    without: Array

    @classmethod
    def of(
        cls, answers: Sequence[Array], weights: Sequence[Array], labels: Integers, *, scoring: str
    ) -> HeldScores:
        """Return the scores of probabilities of labels, given each answer that the release may
        give.

        Args:
            answers: probabilities of labels for each answer, shape (n, classes).
            weights: chance of each answer, shape (n,).
            labels: shape (n,), integers from 0 to classes - 1.
            scoring: one of ``SCORINGS``.
        """
        group = balanced_folds(labels, GROUPS)
        kept = [group != place for place in range(GROUPS)]
        # A label whose only row is left out is not asked about.
        return cls(
            answer_scores(answers, weights, labels),
            np.array(
                [
                    answer_scores(
                        [answer[rows] for answer in answers],
                        [weight[rows] for weight in weights],
                        labels[rows],
                    ).of(scoring)
                    for rows in kept
                ]
            ),
        )

    def error(self, other: HeldScores) -> float:
        """Return the standard error of the difference from ``other`` on the same rows, by the
        jackknife.

        References:
            - Efron and Stein (1981), "The jackknife estimate of variance",
              doi:10.1214/aos/1176345462.
        """
        gains = self.without - other.without
        return math.sqrt((GROUPS - 1) / GROUPS * float(np.square(gains - gains.mean()).sum()))


def simplest(found: Sequence[tuple[Release, HeldScores]], *, scoring: str) -> Release:
    """The first release that is worth, on held-out rows, at most ``ERRORS`` standard errors of the
    difference less than the best.

    With one error, chance alone would put one of three releases ahead of a simpler one that is
    worth as much two times in five.

    Args:
        found: releases and what they are worth, the simplest first.
        scoring: one of ``SCORINGS``.

    References:
        - Breiman, Friedman, Olshen and Stone (1984), "Classification and regression trees",
          Wadsworth, section 3.4.3, such a rule, with one standard error.
    """
    best = max((held for _, held in found), key=lambda held: held.scores.of(scoring))
    worth = best.scores.of(scoring)
    return next(
        release
        for release, held in found
        if worth - held.scores.of(scoring) <= ERRORS * best.error(held)
    )


def answer_scores(answers: Sequence[Array], weights: Sequence[Array], labels: Integers) -> Scores:
    """Return scores of probabilities of labels, given each answer that a release may give.

    Labels that none of the rows has are left out.

    Args:
        answers, weights, labels: arguments of ``HeldScores.of``.
    """
    seen = np.unique(labels)
    chances, counted = [], []
    for answer, weight in zip(answers, weights, strict=True):
        found = np.maximum(answer[:, seen], np.finfo(np.float64).tiny)
        chances.append(found / found.sum(axis=1, keepdims=True))
        counted.append(weight[:, None] * (labels[:, None] == seen))
    return prediction_scores(np.concatenate(chances), np.concatenate(counted))


def served(
    released: Array,
    labels: Integers,
    answers: Sequence[Array],
    weights: Sequence[Array],
    held: Integers,
    *,
    scoring: str,
    seed: int,
) -> HeldScores:
    """Return what a server makes of released values: a booster that learns from some rows.

    It is scored on others.

    Args:
        released: shape (n, m), released values of rows, and what is sent along.
        labels: shape (n,), their labels, integers from 0.
        answers: values of each answer about k other rows, shape (k, m), released and sent along.
        weights: chance of each answer, shape (k,).
        held: shape (k,), labels of these rows.
        scoring: one of ``SCORINGS``.
        seed: seed of the booster.
    """
    model = HistGradientBoostingClassifier(**SERVER, random_state=seed).fit(released, labels)
    classes = 1 + int(max(labels.max(), held.max()))
    chances = []
    for answer in answers:
        found = np.zeros((len(held), classes))
        found[:, model.classes_] = model.predict_proba(answer)
        chances.append(found)
    return HeldScores.of(chances, weights, held, scoring=scoring)
