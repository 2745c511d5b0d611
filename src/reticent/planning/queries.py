"""Answers that are paid for one by one, as ``reticent.plan`` compares them by their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Integers
from reticent.core.guarantees import AddRemove
from reticent.neighbours import PointGrid
from reticent.neighbours.exhaustive import Exhaustive
from reticent.noise import SeededSampler
from reticent.planning.methods import Answers, PublicUse, RecordMethod, total
from reticent.planning.parts import KnownPoints, KnownStart, PublicParts
from reticent.planning.rows import without_schema
from reticent.planning.tasks import Settings, Task
from reticent.release.fits import not_counted
from reticent.systems.public_reference import PublicReference
from reticent.systems.scores import Predictions
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.training.public_start import offset_steps

_FREE = "a plan: its rows are public, and nothing that is fitted leaves"
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
    """Records vote for their label as far as they point the query's way."""

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
        """Where votes are clipped."""
        return {"clip_quantile": 0.6}

    def estimator(self, task: Task) -> Any:
        """Return the unfitted ``LinearVoteClassifier``."""
        return LinearVoteClassifier(**total(task), answers=task.answers or 1, clip_quantile=0.6)


class ResidualVotes(LinearVotes):
    """Records vote with what public models of the same rows leave unsaid."""

    name = "linear vote beside public models"
    line = "each record votes with its residual beside public models, from which the votes begin"
    uses = PublicUse.LABELS_TOO

    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        """See ``RecordMethod``. A stand-in has the offset of models without its own label, and the
        public models' part shrinks with the number of stand-ins as the records' sum does.
        """
        found = self._assembled(tasks, parts)
        task = without_schema(tasks[0])
        numbers = np.arange(len(parts.rows), dtype=np.float64)[:, None]
        for (train, test), points in zip(parts.folds, parts.points, strict=True):
            model = _VotesOnStandIns(**self._arguments(task, len(train)))
            model.given = KnownPoints(
                np.hstack([points, offset_steps(parts.offsets)]), (slice(0, task.classes),)
            )
            model.given_offsets, model.planned = parts.offsets[train], task.n_private
            with not_counted(_FREE):
                model.fit(
                    numbers[train],
                    parts.codes[train],
                    public_X=numbers[train],
                    public_y=parts.codes[train],
                )
            totals = [(t.guarantee.epsilon, t.guarantee.delta, t.answers or 1) for t in tasks]
            clips = [model.clip_for(*total) for total in totals]
            for clip in sorted(set(clips)):
                places = [place for place, own in enumerate(clips) if own == clip]
                labels = model.set_params(clip_quantile=clip).simulate_totals(
                    numbers[test],
                    totals=[totals[place] for place in places],
                    seeds=parts.seeds,
                    noise_scale=len(train) / task.n_private,
                )
                for place, told in zip(places, labels, strict=True):
                    for draw, label in zip(found[place], told, strict=True):
                        draw[test] = label
        return self._told(found)

    def estimator(self, task: Task) -> Any:
        """Return the unfitted ``LinearVoteClassifier`` beside a ``PublicReference``."""
        return LinearVoteClassifier(**self._arguments(task, task.n_private))

    def _arguments(self, task: Task, records: int) -> dict[str, Any]:
        reference = PublicReference(schema=task.schema, rows=task.rows, records=records)
        return {
            **total(task),
            "answers": task.answers or 1,
            "features": reference,
        }


class _VotesOnStandIns(KnownStart, LinearVoteClassifier):
    """The estimator on rows whose points and offsets are known, cut as with all records."""

    planned: int

    @property
    @override
    def _stated(self) -> int:
        return self.planned

    def clip_for(self, epsilon: float, delta: float, answers: int) -> float:
        """Return the share that is not clipped at that total of so many answers."""
        return self._share(self._answering(epsilon, delta, answers))


class IndividualNeighbours(QueryMethod):
    """The records within a public radius vote, each as long as its own budget lasts."""

    name = "individual kNN"
    line = "the records near a query vote; each retires when its own budget is spent"
    protects = "every private record, by a budget of its own"
    replace: ClassVar[bool] = False

    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        """See ``RecordMethod``. Radii hold shares of public rows, so a record is near as many
        queries however many records there are. Its budget is scaled with the number of queries.
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
        """The share of public rows within the radius, and whole votes of one record."""
        return {"share": _SHARE, "votes": round(_votes(task), 2)}

    def estimator(self, task: Task) -> Any:
        """``IndividualKNNClassifier``, unfitted."""
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
    # Fewer answers than queries: each part of the queries is asked of whole budgets.
    for first in range(0, len(asked), size):
        some = slice(first, first + size)
        session = IndividualSession(plan, noise_scale=scale, cap_scale=part)
        held = HeldRecords(session.filter, dimension=grid.dimension, by_person=False)
        held.insert(points, codes, None)
        labels[some] = session.answer(held, asked[some], kernels[some], sampler=sampler)
    return labels


def _votes(task: Task) -> float:
    """Whole votes of one record, for the number of queries that it will be near."""
    near = _SHARE * (task.answers or 1)
    return float(min(max(1.0, _PART * _SPENT * near), _MOST_VOTES))
