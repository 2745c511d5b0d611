"""The fit of a release with free attributes: the answer that serves a server best, on public
rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from reticent.core.arrays import Array, Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidParameter
from reticent.noise import SeededSampler
from reticent.systems.power.clear_query import (
    ANSWER_UNIT,
    LikeliestQuery,
    ProtectedQuery,
    all_scores,
)
from reticent.systems.power.held_scores import HeldScores, answer_scores, served, simplest
from reticent.systems.power.protection import UNIT, Protection
from reticent.systems.power.query import CHOICES, Answers, PowerSetting, rank
from reticent.systems.power.settings import RowFit
from reticent.training.noise import training_noise
from reticent.training.power.reader import train_reader
from reticent.training.public_forest import Forest
from reticent.training.public_models import BoostedTrees, label_shares

Fitted: TypeAlias = "ProtectedQuery | FittedLikeliest"

_DROPOUTS = (0.0, 0.3)  # of free coordinates: none where rows are many, some where they are few
_MOST_TOLD = 4  # coordinates, if not all are told
_RANKED_ROWS = 5_000  # public rows, at most, on which coordinates are ranked
_RANKING: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 8,
    "max_iter": 40,
    "l2_regularization": 1.0,
    "early_stopping": False,
}
_LEAST = 1e-12

_GIVEN: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 8,
    "max_iter": 30,
    "l2_regularization": 1.0,
    "early_stopping": False,
}
_FOREST: dict[str, Any] = {
    "n_estimators": 100,
    "max_features": 0.37,
}
_LEAVES = (1, 3)  # least rows in a leaf: few where labels are clear, more where they are not
_MOST_CANDIDATES = 5
_SMOOTHING = 0.5  # rows, for each candidate


def fit_protected(
    fit: RowFit, mechanisms: Sequence[str]
) -> tuple[ProtectedQuery | LikeliestQuery, tuple[PowerSetting, ...]]:
    """Return the simplest query among ``mechanisms`` that serves as well as the best.

    That is up to two standard errors. Return also the best plan of each kind, best first. The
    simplest is noise on the protected coordinates, on all of them, then on some, then one of the
    likeliest labels. Of each kind the one is taken whose own log odds are worth most on the rows
    held out. These are compared by what the same booster makes of them, which sees what is free
    too.

    Args:
        fit: what the fit is told.
        mechanisms: some of ``PROTECTED``.

    Raises:
        InvalidParameter: a radius that leaves no attribute of the schema free or protected as a
            whole, or no hidden width.
    """
    assert fit.required.radius is not None  # the plan refuses it
    protection = Protection(fit.schema, fit.required.radius)
    if not fit.training.hidden:
        raise InvalidParameter("hidden=(): expected a width, of the layers of the model")
    kinds: list[list[Fitted]] = []
    if "clear-noise" in mechanisms:
        told = told_columns(protection, fit)
        dropouts: Sequence[float] = _DROPOUTS
        for columns in sorted({(), told} if protection.answers_all else {told}):
            fields: dict[str, Any] = {"columns": columns, "candidates": 0, "choice": ""}
            plan = replace(fit.required, mechanism="clear-noise", delta=0.0, **fields)
            here: list[Fitted] = [_reader(protection, plan, fit, dropout) for dropout in dropouts]
            # The share of dropout is settled by what is trained first.
            dropouts = (dropouts[here.index(_best(here))],)
            kinds.append(here)
    if "clear-code" in mechanisms:
        kinds.append(list(fit_likeliest(protection, fit)))
    best = [_best(kind) for kind in kinds]
    found = [_served(fitted, fit) for fitted in best]
    ranked = sorted((plan for plan, _ in found), key=rank)
    order = [(place, held) for place, (_, held) in enumerate(found)]
    place = simplest(order, scoring=fit.required.scoring)
    fitted = best[place]
    # Models whose worth was estimated on rows held out may learn from these as well.
    chosen = fitted.again(fit) if isinstance(fitted, FittedLikeliest) else fitted
    return replace(chosen, plan=found[place][0]), tuple(ranked)


def _best(found: Sequence[Fitted]) -> Fitted:
    """The one of the highest utility."""
    return min(found, key=lambda fitted: rank(_query(fitted).plan))


def _query(fitted: Fitted) -> ProtectedQuery | LikeliestQuery:
    return fitted.query if isinstance(fitted, FittedLikeliest) else fitted


def _served(fitted: Fitted, fit: RowFit) -> tuple[PowerSetting, HeldScores]:
    """The plan with its utility to a server that gets what is free along."""
    query = _query(fitted)
    if isinstance(fitted, FittedLikeliest):
        released = fitted.released(seed=fit.seed)
        values, weights = fitted.answers()
    else:
        released = fitted.drawn(fit.train, sampler=SeededSampler(fit.seed + 1))
        values, weights = fitted.answers(fit.held, seed=fit.seed)
    free = query.protection.given(fit.held)
    held = served(
        np.column_stack([query.protection.given(fit.train), released]),
        fit.train_labels,
        [np.column_stack([free, value]) for value in values],
        weights,
        fit.held_labels,
        scoring=query.plan.scoring,
        seed=fit.seed,
    )
    return query.plan.worth(held.scores), held


def _reader(
    protection: Protection, plan: PowerSetting, fit: RowFit, dropout: float
) -> ProtectedQuery:
    """The release of a plan's columns with a model that was trained for it, scored."""
    free, near = protection.given(fit.train), protection.steps(fit.train) / UNIT
    told = near[:, list(plan.columns)] if plan.columns else near
    model = train_reader(
        free,
        told,
        fit.train_labels,
        fit.config(),
        epsilon=plan.epsilon,
        norm=protection.norm,
        hidden=fit.training.hidden[0],
        answer_unit=ANSWER_UNIT,
        dropout=dropout,
        report=fit.report,
    )
    query = ProtectedQuery(protection.schema, model, plan)
    scores = answer_scores(*query.chances(fit.held, seed=fit.seed), fit.held_labels)
    return replace(query, plan=plan.worth(scores))


def told_columns(protection: Protection, fit: RowFit) -> tuple[int, ...]:
    """Return places of the protected coordinates that "clear-noise" answers about, () for all of
    them.

    Noise of m coordinates in l2 has a variance that grows with m + 1, so what says little about the
    label is better left out. Coordinates are ranked by what each, alone with its noise, adds to the
    free ones. The first, the first two and so on are compared. The best of these is taken if it
    is better than all of them by more than two standard errors of the difference, or if they are
    more than noise is drawn for. A booster learns from some of the public rows and is scored, in
    nats, on the others.

    Args:
        protection: what is free and what is protected.
        fit: what the fit is told.
    """
    seed, epsilon = fit.seed, fit.required.epsilon
    torch.manual_seed(seed)
    random, norm = np.random.default_rng(seed), protection.norm
    count = len(protection.protected)
    train = random.permutation(len(fit.train))[:_RANKED_ROWS]
    held = random.permutation(len(fit.held))[:_RANKED_ROWS]
    parts = (fit.train[train], fit.held[held])
    targets = (fit.train_labels[train], fit.held_labels[held])
    free = [protection.given(values) for values in parts]
    near = [protection.steps(values) / UNIT for values in parts]

    def losses(places: tuple[int, ...]) -> Array:
        """Return losses of held rows, shape (k,). The least chance stands for a label that was
        not learnt.
        """
        noise = [training_noise(len(part), len(places), output_norm=norm) for part in near]
        noisy = [
            part[:, list(places)] + drawn.numpy() / epsilon
            for part, drawn in zip(near, noise, strict=True)
        ]
        seen = [np.column_stack(pair) for pair in zip(free, noisy, strict=True)]
        model = HistGradientBoostingClassifier(**_RANKING, random_state=seed)
        chances = model.fit(seen[0], targets[0]).predict_proba(seen[1])
        right = (chances * (targets[1][:, None] == model.classes_)).sum(axis=1)
        return np.asarray(-np.log(np.maximum(right, _LEAST)))

    alone = [losses((place,)) for place in range(count)]
    order = np.argsort([found.mean() for found in alone], kind="stable")
    tried: dict[tuple[int, ...], Array] = {(int(order[0]),): alone[order[0]]}
    for size in range(2, min(_MOST_TOLD, count - 1) + 1):
        places = tuple(sorted(int(place) for place in order[:size]))
        tried[places] = losses(places)
    best = min(tried, key=lambda places: float(tried[places].mean()))
    if count == 1 or not protection.answers_all:
        return best if count > 1 else ()
    gain = losses(tuple(range(count))) - tried[best]
    error = float(gain.std()) / math.sqrt(len(gain))
    return best if gain.mean() > 2.0 * error else ()


@dataclass(frozen=True, eq=False)
class FittedLikeliest:
    """A release, and its models' scores of the public rows.

    Attributes:
        query: the release.
        learnt: scores by what is free, and the forest's shares of labels, of the rows that models
            learnt from, shapes (n, classes). Shares are by trees that did not learn from the row.
        held: the same of the rows held out, shapes (k, classes).
        leaf: least rows in a leaf of the forest.
    """

    query: LikeliestQuery
    learnt: tuple[Array, Array]
    held: tuple[Array, Array]
    leaf: int

    def again(self, fit: RowFit) -> LikeliestQuery:
        """Return the release with models that learnt from all public rows, every tree from each.

        How often the forest names which candidate is still that of the fewer.
        """
        query, seed = self.query, fit.seed
        # In this order, by which trees are drawn.
        every = np.concatenate([fit.train, fit.held])
        labels = np.concatenate([fit.train_labels, fit.held_labels])
        forest = ExtraTreesClassifier(**_FOREST, min_samples_leaf=self.leaf, random_state=seed)
        return replace(
            query,
            given=_given(query.protection, every, labels, seed=seed),
            forest=Forest.from_sklearn(forest.fit(every, labels), classes=query.forest.classes),
        )

    def released(self, *, seed: int) -> Array:
        """Return what would be released about the rows that models learnt from, had they not.

        It has shape (n, outputs).

        Args:
            seed: seed of the response.
        """
        query = self.query
        told = query.mechanism.release(query.places(*self.learnt), sampler=SeededSampler(seed))
        return query.read(self.learnt[0], told)

    def answers(self) -> Answers:
        """Return what may be released about rows held out, and its chances."""
        return self.query.every_answer(self.held[0], self.query.places(*self.held))


def fit_likeliest(protection: Protection, fit: RowFit) -> Iterator[FittedLikeliest]:
    """Return a release for each number of candidates and each way to choose among them.

    Each has what the log odds that it gives are worth on the rows held out, exactly over the
    response's noise.

    Args:
        protection: what is free and what is protected.
        fit: what the fit is told. How often the forest is right is counted on rows that the tree
            did not learn from.
    """
    train, labels, seed, report = fit.train, fit.train_labels, fit.seed, fit.report
    classes = 1 + int(max(labels.max(), fit.held_labels.max()))
    if len(np.unique(labels)) < classes:  # a label all of whose rows were held out
        train = np.concatenate([fit.train, fit.held])
        labels = np.concatenate([fit.train_labels, fit.held_labels])
    given = _given(protection, train, labels, seed=seed)
    learnt, held = (all_scores(given, protection.given(values)) for values in (fit.train, fit.held))
    total = 1 + len(_LEAVES)
    report("public models", 1, total, float("nan"))
    for done, leaf in enumerate(_LEAVES, start=2):
        model = ExtraTreesClassifier(
            **_FOREST, bootstrap=True, oob_score=True, min_samples_leaf=leaf, random_state=seed
        )
        with warnings.catch_warnings():
            # Rows that every tree learnt from name the first candidate.
            warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
            with np.errstate(invalid="ignore"):
                model.fit(train, labels)
        forest = Forest.from_sklearn(model, classes=classes)
        shares = np.nan_to_num(model.oob_decision_function_)[: len(fit.train)]
        held_shares = forest.shares(CodedRows.of(fit.held))
        report("public models", done, total, float("nan"))
        for size in range(2, min(classes, _MOST_CANDIDATES) + 1):
            even = np.full((size + 1, size), 1.0 / size)
            for choice in CHOICES:
                plan = replace(
                    fit.required,
                    mechanism="clear-code",
                    delta=0.0,
                    candidates=size,
                    choice=choice,
                )
                query = LikeliestQuery(protection.schema, given, forest, even, plan)
                yield _scored(
                    FittedLikeliest(query, (learnt, shares), (held, held_shares), leaf), fit
                )


def _given(protection: Protection, rows: Array, labels: Integers, *, seed: int) -> BoostedTrees:
    booster = HistGradientBoostingClassifier(**_GIVEN, random_state=seed)
    return BoostedTrees.from_sklearn(booster.fit(protection.given(rows), labels))


def _scored(fitted: FittedLikeliest, fit: RowFit) -> FittedLikeliest:
    """Return it with how often each candidate is named, by the place of the right label, and its
    utility.
    """
    query, size = fitted.query, fitted.query.plan.candidates
    right = query.candidates(fitted.learnt[0]) == fit.train_labels[:, None]
    place = np.where(right.any(axis=1), right.argmax(axis=1), size)
    counts = np.full((size + 1, size), _SMOOTHING)
    np.add.at(counts, (place, query.places(*fitted.learnt)), 1.0)
    fitted = replace(fitted, query=replace(query, hits=counts / counts.sum(axis=1, keepdims=True)))
    values, weights = fitted.answers()
    chances = [label_shares(value[:, : query.odds]) for value in values]
    found = answer_scores(chances, weights, fit.held_labels)
    return replace(fitted, query=replace(fitted.query, plan=query.plan.worth(found)))
