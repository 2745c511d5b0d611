"""Answers that are paid for one by one, which ``reticent.plan`` compares by their number."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.core.guarantees import AddRemove
from reticent.neighbours import PointGrid
from reticent.neighbours.exhaustive import Exhaustive
from reticent.noise import SeededSampler
from reticent.planning.methods import Answers, PublicUse, RecordMethod, total
from reticent.planning.parts import PublicParts
from reticent.planning.rows import without_schema
from reticent.planning.tasks import Settings, Task
from reticent.release.fits import not_counted
from reticent.systems.certified.choosing import calibrated_choice
from reticent.systems.certified.query import MechanismChoice
from reticent.systems.scores import Predictions

_FREE = "a plan: its rows are public, and nothing that is fitted leaves"
_STRENGTH = 10.0
_LEAST_STRENGTH = 1.0 / 16.0
_NORM_SHARE = 0.6
"""Norm bound over the norm of a corner of the ranges. A row uniform within them has 0.58."""
_MOST_LEVELS = 2.0**40
_LEAST_EPSILON = 1e-6
_LARGEST_EPSILON = 100.0
_SHARE, _PART, _LEAD = 0.05, 0.6, 1.0
_SPENT = 0.5  # about the mean squared weight of a vote within the radius
_MOST_VOTES = 2.0**20


class QueryMethod(RecordMethod):
    """A method whose answers are labels, of a number that is fixed beforehand."""

    protects = "every private record, by the randomness of each answer"
    uses = PublicUse.ROWS
    limited = True

    def _assembled(self, tasks: Sequence[Task], parts: PublicParts) -> list[list[Integers]]:
        return [[np.zeros(len(parts.rows), dtype=np.int64) for _ in parts.seeds] for _ in tasks]

    def _told(self, found: list[list[Integers]]) -> Answers:
        return [[Predictions(draw) for draw in draws] for draws in found]


class LinearVotes(QueryMethod):
    """Votes of records for their label, with the weight of their component along the query."""

    name = "linear vote"
    line = "each record votes for its label as far as it points the query's way"
    delta = False

    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        """See ``RecordMethod``."""
        found = self._assembled(tasks, parts)
        for train, test in parts.folds:
            with not_counted(_FREE):
                fitted = self.estimator(without_schema(tasks[0])).fit(
                    parts.rows[train], parts.codes[train], public_X=parts.rows[train]
                )
            labels = fitted.simulate_totals(
                parts.rows[test],
                totals=[(t.guarantee.epsilon, t.guarantee.delta, t.answers or 1) for t in tasks],
                seeds=parts.seeds,
                noise_scale=len(train) / parts.task.n_private,
            )
            for place in range(len(tasks)):
                for draw in range(len(parts.seeds)):
                    found[place][draw][test] = labels[place][draw]
        return self._told(found)

    def settings(self, task: Task) -> Settings:
        """Return the clip of votes."""
        return {"clip_quantile": 0.6}

    def estimator(self, task: Task) -> Any:
        """Return the unfitted ``LinearVoteClassifier``."""
        from reticent.systems.votes.linear_vote import LinearVoteClassifier

        return LinearVoteClassifier(**total(task), answers=task.answers or 1, clip_quantile=0.6)


class StableLabels(QueryMethod):
    """Labels of a regularised logistic regression, certified by the curvature at its minimum."""

    name = "certified prediction"
    line = "logistic regression without noise, labels randomised by its certified stability"
    delta = False
    labels = 2

    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        """See ``RecordMethod``. Certified distances grow with the number of records.

        Regularisation stays the same share of the loss, so the model is that of more records.
        """
        found = self._assembled(tasks, parts)
        for train, test in parts.folds:
            scale = len(train) / parts.task.n_private
            rows = parts.rows[train]
            made = _convex(
                without_schema(parts.task),
                (rows.min(axis=0), rows.max(axis=0)),
                MechanismChoice(name="stability", epsilon=1.0, delta=0.0),
                max(_LEAST_STRENGTH, _STRENGTH * scale),
            )
            with not_counted(_FREE), warnings.catch_warnings():
                # Stand-ins are public, and that some are cut is what a bound on the norm is for.
                warnings.filterwarnings(
                    "ignore", message=".*longer than norm_bound", category=UserWarning
                )
                fitted = made.fit(rows, parts.codes[train])
            [model] = fitted[-1].members_
            labels, reserves = model.reserves(fitted[:-1].transform(parts.rows[test]))
            # Reserves are scaled before they are rounded: with few records most would round to 0.
            levels = np.maximum(np.ceil(reserves / (scale * model.settings.worth)) - 1.0, 0.0)
            whole = np.minimum(levels, _MOST_LEVELS).astype(np.int64)
            for draws, task in zip(found, tasks, strict=True):
                for draw, seed in zip(draws, parts.seeds, strict=True):
                    draw[test] = _randomised(task, labels, whole, seed)
        return self._told(found)

    def settings(self, task: Task) -> Settings:
        """Return the strength of regularisation."""
        return {"regularization": _STRENGTH}

    def estimator(self, task: Task) -> Any:
        """Return a pipeline of public ranges and the classifier, at the cost of one answer."""
        ends = (np.array(task.lower), np.array(task.upper))
        return _convex(task, ends, _each(task), _STRENGTH)


class IndividualNeighbours(QueryMethod):
    """The records within a public radius vote, each as long as its own budget lasts."""

    name = "individual kNN"
    line = "the records near a query vote; each retires when its own budget is spent"
    protects = "every private record, by a budget of its own"
    replace: ClassVar[bool] = False

    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        """See ``RecordMethod``. A record's budget is scaled with the number of queries.

        Radii hold shares of public rows, so the number of queries near a record does not depend on
        the number of records.
        """
        from reticent.systems.private_knn.radii import kernels_by_share

        found = self._assembled(tasks, parts)
        for train, test in parts.folds:
            rows = parts.rows[train]
            grid = PointGrid.around(rows)
            points, asked = grid.points(rows), grid.points(parts.rows[test])
            near = Exhaustive(points)
            kernels = kernels_by_share(asked, near, len(rows), share=_SHARE, power=1)
            scale = len(train) / parts.task.n_private
            for draws, task in zip(found, tasks, strict=True):
                for draw, seed in zip(draws, parts.seeds, strict=True):
                    draw[test] = _by_neighbours(
                        task, grid, points, parts.codes[train], asked, kernels, scale, seed
                    )
        return self._told(found)

    def settings(self, task: Task) -> Settings:
        """Return the share of public rows within the radius, and whole votes of one record."""
        return {"share": _SHARE, "votes": round(_votes(task), 2)}

    def estimator(self, task: Task) -> Any:
        """Return the unfitted ``IndividualKNNClassifier``."""
        from reticent.systems.private_knn.individual import IndividualKNNClassifier
        from reticent.systems.private_knn.radii import Ball

        arguments = total(task)
        del arguments["counting"]
        return IndividualKNNClassifier(
            **arguments,
            votes=_votes(task),
            ball=Ball(share=_SHARE, power=1),
            lead=_LEAD,
        )


def _by_neighbours(
    task: Task,
    grid: Any,
    points: Any,
    codes: Integers,
    asked: Any,
    kernels: Any,
    scale: float,
    seed: int,
) -> Integers:
    from reticent.systems.private_knn.held_records import HeldRecords
    from reticent.systems.private_knn.individual_session import IndividualNoise, IndividualSession

    plan = IndividualNoise.of(
        epsilon=task.guarantee.epsilon,
        delta=task.guarantee.delta,
        classes=task.classes,
        votes=_votes(task),
        looks=(1,),
        lead=_LEAD,
        adjacency=AddRemove(1),
    )
    answers = task.answers or 1
    size = min(len(asked), answers)
    part = max(size / answers, 1.0 / _votes(task))
    sampler, labels = SeededSampler(seed), np.empty(len(asked), dtype=np.int64)
    # If there are fewer answers than queries, each part of the queries starts from whole budgets.
    for first in range(0, len(asked), size):
        some = slice(first, first + size)
        session = IndividualSession(plan, noise_scale=scale, cap_scale=part)
        held = HeldRecords(session.filter, dimension=grid.dimension, by_person=False)
        held.insert(points, codes, None)
        labels[some] = session.answer(held, asked[some], kernels[some], sampler=sampler)
    return labels


def _votes(task: Task) -> float:
    """Return whole votes of one record, for the number of queries that it will be near."""
    near = _SHARE * (task.answers or 1)
    return float(min(max(1.0, _PART * _SPENT * near), _MOST_VOTES))


def _convex(
    task: Task, ends: tuple[Array, Array], each: MechanismChoice, regularization: float
) -> Any:
    from sklearn.pipeline import make_pipeline

    from reticent.systems.certified.convex_classifier import ConvexCertifiedClassifier
    from reticent.systems.public_ranges import PublicRanges

    lower, upper = ends
    upper = np.where(upper > lower, upper, lower + 1.0)
    ranges = (lower.tolist(), upper.tolist()) if task.schema is None else task.schema
    return make_pipeline(
        PublicRanges(ranges),
        ConvexCertifiedClassifier(
            epsilon=each.epsilon,
            delta=each.delta,
            mechanism=each.name,
            classes=task.label_list,
            norm_bound=float(np.sqrt(task.features)) * _NORM_SHARE,
            counting=task.counting,  # type: ignore[arg-type]
            regularization=regularization,
        ),
    )


def _each(task: Task) -> MechanismChoice:
    """Return the mechanism and the cost of one answer that the total allows."""
    guarantee = task.guarantee
    return _choice(task.classes, guarantee.epsilon, guarantee.delta, task.answers or 1)


@lru_cache(maxsize=256)
def _choice(classes: int, epsilon: float, delta: float, answers: int) -> MechanismChoice:
    return calibrated_choice(
        "auto" if epsilon <= _LARGEST_EPSILON else "stability",
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        answers=answers,
    )


def _randomised(task: Task, labels: Integers, levels: Integers, seed: int) -> Integers:
    each = _each(task)
    if each.name == "stability":
        # Below it, levels without number would be tabulated for a guess.
        each = replace(each, epsilon=max(_LEAST_EPSILON, each.epsilon))
    mechanism: Any = each.mechanism(task.classes, task.guarantee.adjacency)
    capped = np.minimum(levels, mechanism.max_level)
    right = (
        mechanism.right_probabilities[capped]
        if each.name == "stability"
        else mechanism.right_probabilities(capped)
    )
    random = np.random.default_rng(seed)
    wrong = random.random(len(labels)) >= right
    shift = 1 + random.integers(task.classes - 1, size=len(labels))
    return np.asarray(np.where(wrong, (labels + shift) % task.classes, labels))
