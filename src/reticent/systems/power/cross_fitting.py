"""The worth of each mechanism where public rows are few: fitted on some folds, scored on the
other.

One fifth of a few hundred rows is too little to choose by, and a server that learns from the rows
that public models learnt from believes them too much. So every mechanism is fitted as it would be,
and what its own log odds are worth is counted on rows that no part of it has seen, all folds
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.coded_rows import CodedRows
from reticent.systems.class_labels import balanced_folds
from reticent.systems.power.code_query import LABEL, CodeQuery
from reticent.systems.power.held_scores import HeldScores, answer_scores, simplest
from reticent.systems.power.likeliest_query import LikeliestQuery
from reticent.systems.power.mechanism_choice import FitSettings, PublicRows, fit_mechanisms
from reticent.systems.power.protected_fitting import protected_answers
from reticent.systems.power.protected_query import ProtectedQuery
from reticent.systems.power.query import PowerSetting, rank
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report
from reticent.training.public_models import label_shares

Labels = npt.NDArray[np.int64]
Answers = tuple[list[Array], list[Array]]

_SIMPLEST = ("clear-noise", "code", "clear-code")
_FOLDS = 4
_TRUST = np.linspace(0.05, 1.5, 30)
_LEAST = 1e-12


def cross_fitted(
    schema: TabularSchema,
    required: PowerSetting,
    rows: Array,
    labels: Labels,
    *,
    mechanisms: Sequence[str],
    settings: FitSettings,
    share: float,
    report: Report,
) -> tuple[PowerSetting, tuple[PowerSetting, ...]]:
    """Return the simplest mechanism's plan that is worth as much as the best up to two standard
    errors, and a plan of each mechanism with its utility, the best first.

    The simplest is noise on what is protected, which leaves all columns to the server's questions.
    Of the others the code comes first, which promises more. A server learns how far log odds are to
    be believed: their power, one number for all rows, is the best of thirty.

    Args:
        schema: the public description of rows.
        required: budget, radius and scoring.
        rows, labels: public rows in a random order, shapes (n, d) and (n,).
        mechanisms: "code" and those of ``PROTECTED`` that may be chosen.
        settings: settings of training.
        share: share of the rows of a fit that it holds out.
        report: receiver of the progress, called after every epoch and every public model.

    Raises:
        InvalidInput: too few rows.
    """
    folds = balanced_folds(labels, _FOLDS)
    found: list[tuple[PowerSetting, HeldScores]] = []
    for mechanism in sorted(mechanisms, key=_SIMPLEST.index):
        answers: list[Answers] = []
        for fold in range(_FOLDS):
            query, (plan, *_) = fit_mechanisms(
                schema,
                required,
                PublicRows.cut(rows[folds != fold], labels[folds != fold], share),
                mechanisms=(mechanism,),
                settings=settings,
                report=report,
            )
            classes = int(labels.max()) + 1
            answers.append(_answers(query, rows[folds == fold], classes, seed=settings.seed))
        order = np.concatenate([np.flatnonzero(folds == fold) for fold in range(_FOLDS)])
        held = _believed(answers, labels[order], scoring=required.scoring)
        found.append((plan.worth(held.scores), held))
    ranked = sorted((plan for plan, _ in found), key=rank)
    return simplest(found, scoring=required.scoring), tuple(ranked)


def _answers(query: Any, rows: Array, classes: int, *, seed: int) -> Answers:
    """Return probabilities of labels by each answer that may be given about rows, and their
    chances.
    """
    if isinstance(query, CodeQuery):
        told, chances = query.posterior(LABEL), query.exact(CodedRows.of(rows))
        return [np.tile(told[code], (len(rows), 1)) for code in range(len(told))], list(chances.T)
    if isinstance(query, LikeliestQuery):
        scores = query.given_scores(rows)
        places = query.places(scores, query.forest.shares(CodedRows.of(rows)))
        values = [
            query.read(scores, np.full(len(rows), place)) for place in range(query.plan.candidates)
        ]
        weights = list(query.mechanism.matrix[places].T)
    else:
        assert isinstance(query, ProtectedQuery)
        values, weights = protected_answers(query, rows, seed=seed)
    columns = 1 if classes == 2 else classes
    return [label_shares(value[:, :columns]) for value in values], weights


def _believed(answers: Sequence[Answers], labels: Labels, *, scoring: str) -> HeldScores:
    """Return scores of pooled answers, with the power of the odds at which they tell most."""
    most = max(len(chances) for chances, _ in answers)
    prior = np.bincount(labels) / len(labels)
    chances, weights = [], []
    for place in range(most):  # a fold may have fewer codes than another
        parts, counts = [], []
        for told, likely in answers:
            here = place < len(told)
            parts.append(told[place] if here else np.tile(prior, (len(told[0]), 1)))
            counts.append(likely[place] if here else np.zeros(len(told[0])))
        chances.append(np.maximum(np.concatenate(parts), _LEAST))
        weights.append(np.concatenate(counts))

    def believed(trust: float) -> list[Array]:
        powers = [(part / prior) ** trust * prior for part in chances]
        return [part / part.sum(axis=1, keepdims=True) for part in powers]

    worths = [answer_scores(believed(trust), weights, labels).information for trust in _TRUST]
    best = believed(_TRUST[int(np.argmax(worths))])
    return HeldScores.of(best, weights, labels, scoring=scoring)
