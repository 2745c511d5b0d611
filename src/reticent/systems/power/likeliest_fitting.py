"""The fit of a release of one of the likeliest labels: the models, and the number of labels that
are told apart, on public rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from reticent.core.arrays import Array
from reticent.core.coded_rows import CodedRows
from reticent.noise import SeededSampler
from reticent.systems.power.held_scores import answer_scores
from reticent.systems.power.likeliest_query import LikeliestQuery, all_scores
from reticent.systems.power.protection import Protection
from reticent.systems.power.query import CHOICES, Answers
from reticent.systems.power.settings import RowFit
from reticent.training.public_forest import Forest
from reticent.training.public_models import BoostedTrees, label_shares

Labels = npt.NDArray[np.int64]

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


def _given(protection: Protection, rows: Array, labels: Labels, *, seed: int) -> BoostedTrees:
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
