"""The choice of the mechanism that releases table rows, on public rows.

All that may be chosen are fitted, and the best by the user's scoring answers. One fifth of a few
hundred rows is too little to choose by, and a server that learns from the rows that public models
learnt from believes them too much. So where rows are few, every mechanism is fitted as it would be
on some folds, and what its own log odds are worth is counted on rows that no part of it has seen,
all folds together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput
from reticent.systems.power.code_fitting import NODES, PublicRows, Wanted, code_nodes
from reticent.systems.power.code_query import LABEL, CodeQuery, SchemaRows
from reticent.systems.power.held_scores import HeldScores, answer_scores, simplest
from reticent.systems.power.protection import LARGEST_SHARED_RADIUS, AttributeRadii, Protection
from reticent.systems.power.query import (
    PROTECTED,
    VECTORS,
    Answers,
    ClearQuery,
    PowerSetting,
    RowQuery,
    neighbours_within,
    rank,
)
from reticent.systems.power.settings import RowFit
from reticent.systems.record_labels import FEW_ROWS, balanced_folds
from reticent.systems.scores import channel_scores, joint_of
from reticent.tables.schema import TabularSchema

ANY_TWO_RECORDS = ("code",)
"""What "auto" takes where any two records are neighbours. Noise on vectors would have to cover the
diameter of the encoded box; it stays available by name."""

_LEAST_OF_LABEL = 10
_SIMPLEST = ("clear-noise", "code", "clear-code")
_FOLDS = 4
_TRUST = np.linspace(0.05, 1.5, 30)
_LEAST = 1e-12

Chosen = tuple[RowQuery | CodeQuery, PowerSetting, tuple[PowerSetting, ...]]
"""A query, its plan, and every plan that was scored, best first. The plan of the query may stand
below the first, where it is simpler."""


def compared(plan: PowerSetting, schema: TabularSchema) -> tuple[str, ...]:
    """Return what "auto" compares for the budget and the radius of ``plan``.

    Noise on the outputs of an encoder of all coordinates alike is left out where some are free:
    noise on the protected ones alone leaves the others as they are. The code hides any two records,
    and is compared within every radius.
    """
    radius = plan.radius
    if radius is None:
        return ANY_TWO_RECORDS
    if isinstance(radius, AttributeRadii):
        return (*ANY_TWO_RECORDS, *PROTECTED)
    gaussian = ("gaussian",) if plan.delta else ()
    if radius > LARGEST_SHARED_RADIUS or not len(Protection(schema, radius).free):
        protected = ("clear-noise",) if radius <= LARGEST_SHARED_RADIUS else ()
        return (*protected, "k-norm-l2", *ANY_TWO_RECORDS, *gaussian)
    return (*ANY_TWO_RECORDS, *PROTECTED, *gaussian)


def _few(labels: Integers, mechanisms: Sequence[str]) -> bool:
    """Return whether public rows are so few that mechanisms are compared across folds.

    That is for those that give log odds of labels, where every label has rows enough.
    """
    several = len(mechanisms) > 1 and set(mechanisms) <= {*ANY_TWO_RECORDS, *PROTECTED}
    return several and len(labels) < FEW_ROWS and int(np.bincount(labels).min()) >= _LEAST_OF_LABEL


def chosen(fit: RowFit, mechanisms: Sequence[str]) -> Chosen:
    """Return the query of the highest utility, or of few rows the simplest one that is worth as
    much.

    Args:
        fit: what every fit is told.
        mechanisms: names of mechanisms that may be chosen.

    Raises:
        InvalidInput: too few rows.
        CalibrationFailed: no mechanism meets the requirement.
    """
    if not _few(fit.labels, mechanisms):
        return fitted(fit, mechanisms)
    simple, plans = _cross_fitted(fit, mechanisms)
    query, plan, _ = fitted(fit, (simple.mechanism,))
    return query, simple if isinstance(query, CodeQuery) else plan, plans


def fitted(fit: RowFit, mechanisms: Sequence[str]) -> Chosen:
    """Return the query of the highest utility among ``mechanisms``.

    Args:
        fit, mechanisms: arguments of ``chosen``.

    Raises:
        InvalidInput, CalibrationFailed: the errors of ``chosen``.
    """
    if len(fit.train) < 2 or len(np.unique(fit.train_labels)) < 2:
        raise InvalidInput(
            f"X: n_samples={len(fit.rows)} is too few to train and calibrate on; expected rows of "
            "two classes"
        )
    found: list[Chosen] = []
    if "code" in mechanisms:
        code, plan = _code(fit)
        found.append((code, plan, (plan,)))
    # Late: these train networks, which need torch.
    protected = [name for name in mechanisms if name in PROTECTED]
    if protected:
        from reticent.systems.power.clear_fitting import fit_protected

        clear, plans = fit_protected(fit, protected)
        found.append((clear, clear.plan, plans))
    others = [name for name in mechanisms if name in VECTORS]
    if others:
        from reticent.systems.power.fitting import fit_vectors

        vectors, plans = fit_vectors(fit, others)
        found.append((vectors, vectors.plan, plans))
    query, plan, _ = min(found, key=lambda part: rank(part[2][0]))
    return query, plan, tuple(sorted((plan for *_, plans in found for plan in plans), key=rank))


def _code(fit: RowFit) -> tuple[CodeQuery, PowerSetting]:
    """Return a code of any two records for one label, and its plan with its worth on rows held
    out.
    """
    every = CodedRows.of(np.concatenate([fit.train, fit.held]))
    labels = np.concatenate([fit.train_labels, fit.held_labels])
    wanted = Wanted(LABEL, np.arange(int(labels.max()) + 1), labels, None)
    scoring = fit.required.scoring
    inputs = SchemaRows(fit.schema)
    public = PublicRows(inputs, every, (wanted,), (), fit.seed, scoring, len(fit.held))
    found = code_nodes(public, None, most=NODES).best(fit.required.epsilon)
    held = found.nodes(CodedRows.of(fit.held))
    joint = joint_of(held, fit.held_labels, bins=found.mechanism.nodes.size)
    scores = channel_scores(found.mechanism.matrix.T @ joint)
    adjacency = neighbours_within(fit.required.radius, fit.schema)
    plan = replace(fit.required, mechanism="code", delta=0.0)
    return replace(found, mechanism=replace(found.mechanism, adjacency=adjacency)), plan.worth(
        scores
    )


def _cross_fitted(
    fit: RowFit, mechanisms: Sequence[str]
) -> tuple[PowerSetting, tuple[PowerSetting, ...]]:
    """Return the simplest mechanism's plan that is worth as much as the best up to two standard
    errors, and a plan of each mechanism with its utility, the best first.

    The simplest is noise on what is protected, which leaves all columns to the server's questions.
    Of the others the code comes first, which promises more. A server learns how far log odds are to
    be believed: their power, one number for all rows, is the best of thirty.
    """
    rows, labels, scoring = fit.rows, fit.labels, fit.required.scoring
    folds = balanced_folds(labels, _FOLDS)
    found: list[tuple[PowerSetting, HeldScores]] = []
    for mechanism in sorted(mechanisms, key=_SIMPLEST.index):
        answers: list[Answers] = []
        for fold in range(_FOLDS):
            kept = replace(fit, rows=rows[folds != fold], labels=labels[folds != fold])
            query, _, (plan, *_) = fitted(kept, (mechanism,))
            answers.append(_answers(query, rows[folds == fold], seed=fit.seed))
        order = np.concatenate([np.flatnonzero(folds == fold) for fold in range(_FOLDS)])
        held = _believed(answers, labels[order], scoring=scoring)
        found.append((plan.worth(held.scores), held))
    ranked = sorted((plan for plan, _ in found), key=rank)
    return simplest(found, scoring=scoring), tuple(ranked)


def _answers(query: RowQuery | CodeQuery, rows: Array, *, seed: int) -> Answers:
    """Return probabilities of labels by each answer that may be given about rows, and their
    chances.
    """
    if isinstance(query, CodeQuery):
        told, chances = query.posterior(LABEL), query.exact(CodedRows.of(rows))
        return [np.tile(each, (len(rows), 1)) for each in told], list(chances.T)
    assert isinstance(query, ClearQuery)
    return query.chances(rows, seed=seed)


def _believed(answers: Sequence[Answers], labels: Integers, *, scoring: str) -> HeldScores:
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
