"""Answers that are paid for one by one, as ``reticent.plan`` compares them by their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Integers
from reticent.noise import SeededSampler
from reticent.planning.methods import Answers, PublicUse, RecordMethod, total
from reticent.planning.parts import PublicParts
from reticent.planning.rows import without_schema
from reticent.planning.tasks import Settings, Task
from reticent.release.fits import not_counted
from reticent.retraining.convex import ConvexModel
from reticent.retraining.reserves import ReserveModel
from reticent.systems.certified.choosing import calibrated_choice, enough_distance
from reticent.systems.certified.query import CertifiedQuery, MechanismChoice
from reticent.systems.certified.reserve_system import ConvexCertifiedClassifier
from reticent.systems.embedding import IdentityEmbedding
from reticent.systems.public_reference import PublicReference
from reticent.systems.scores import Predictions
from reticent.systems.votes.estimator import KnownStart
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.training.public_space import UNIT
from reticent.training.public_start import KINDS, offset_steps

_LEAST_EPSILON = 1.0001e-6
_FREE = "a plan: its rows are public, and nothing that is fitted leaves"


class QueryMethod(RecordMethod):
    """A method whose answers are labels, of a number that is fixed beforehand."""

    protects = "every private record, by the randomness of each answer"
    uses = PublicUse.ROWS
    limited = True

    def _labels(self, tasks: Sequence[Task], parts: PublicParts) -> Integers:
        """Return room for labels, shape (tasks, draws, m)."""
        return np.zeros((len(tasks), len(parts.seeds), len(parts.rows)), dtype=np.int64)

    def _told(self, found: Integers) -> Answers:
        return [[Predictions(draw) for draw in draws] for draws in found]


class LinearVotes(QueryMethod):
    """Records vote for their label as far as they point the query's way."""

    name = "linear vote"
    line = "each record votes for its label as far as it points the query's way"
    delta = False

    @override
    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        found = self._labels(tasks, parts)
        for train, test in parts.folds:
            with not_counted(_FREE):
                fitted = self.estimator(without_schema(tasks[0])).fit(
                    parts.rows[train], parts.codes[train], public_X=parts.rows[train]
                )
            found[:, :, test] = fitted.simulate_totals(
                parts.rows[test],
                totals=[(t.guarantee.epsilon, t.guarantee.delta, t.answers or 1) for t in tasks],
                seeds=parts.seeds,
                noise_scale=len(train) / parts.task.n_private,
            )
        return self._told(found)

    def settings(self, task: Task) -> Settings:
        """Where votes are clipped."""
        return {"clip_quantile": 0.6}

    def estimator(self, task: Task) -> Any:
        """Return the unfitted ``LinearVoteClassifier``."""
        return LinearVoteClassifier(**total(task), answers=task.answers or 1, **self.settings(task))


class ResidualVotes(LinearVotes):
    """Records vote with what public models of the same rows leave unsaid."""

    name = "linear vote beside public models"
    line = "each record votes with its residual beside public models, from which the votes begin"
    uses = PublicUse.LABELS_TOO

    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        """See ``RecordMethod``. A stand-in has the offset of models without its own label, and the
        public models' part shrinks with the number of stand-ins as the records' sum does.
        """
        found = self._labels(tasks, parts)
        task = without_schema(tasks[0])
        numbers = np.arange(len(parts.rows), dtype=np.float64)[:, None]
        for (train, test), points in zip(parts.folds, parts.points, strict=True):
            known = KnownStart(
                np.hstack([points, offset_steps(parts.offsets)]),
                (slice(0, task.classes),),
                parts.offsets[train],
                task.n_private,
            )
            model = LinearVoteClassifier(**self._arguments(task, len(train))).on_known_rows(known)
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
                    found[place][:, test] = told
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


class CertifiedLabels(QueryMethod):
    """Records correct public models without noise, and labels are randomised by their distance."""

    name = "convex certificate beside public models"
    line = "a regression without noise beside public models; labels by their certified distances"
    uses = PublicUse.LABELS_TOO
    delta = False

    @override
    def missing(self, task: Task, *, labelled: bool) -> str:
        few = task.guarantee.epsilon < _LEAST_EPSILON * (task.answers or 1)
        why = super().missing(task, labelled=labelled)
        return why or ("leaves less than 1e-6 of epsilon for an answer" if few else "")

    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        """See ``RecordMethod``. A stand-in has the offset of models without its own label.

        Few stand-ins need more regularization than many records, which keeps their model nearer to
        the public ones. Reserves are those of that model at the real regularization.
        """
        found = self._labels(tasks, parts)
        for (train, test), points in zip(parts.folds, parts.points, strict=True):
            rows = np.hstack([points / UNIT, parts.offsets])
            scale = len(train) / parts.task.n_private
            known: dict[float, tuple[ReserveModel, ...]] = {}
            for place, task in enumerate(map(_answerable, tasks)):
                strength = _strength(task, points.shape[1])
                weaker = max(_least(points.shape[1]), strength * scale)
                if weaker not in known:
                    made = ConvexCertifiedClassifier(**_convex(task, weaker))
                    known[weaker] = made.trained(
                        rows[train], parts.codes[train], np.arange(task.classes), None
                    )
                members = tuple(_of_more(model, strength, scale) for model in known[weaker])
                query = CertifiedQuery(IdentityEmbedding(rows.shape[1]), members, _choice(task))
                told = query.stable_distances(rows[test])
                mechanism: Any = query.mechanism
                for draw, seed in zip(found[place], parts.seeds, strict=True):
                    draw[test] = mechanism.release(*told, sampler=SeededSampler(seed))
        return self._told(found)

    def settings(self, task: Task) -> Settings:
        """The strength of regularization, for the noise that the answers have."""
        return {"regularization": _strength(task, KINDS[task.rows])}

    def estimator(self, task: Task) -> Any:
        """Return the unfitted ``ConvexCertifiedClassifier`` beside a ``PublicReference``."""
        choice = _choice(task)
        return ConvexCertifiedClassifier(
            **{
                **_convex(task, _strength(task, KINDS[task.rows])),
                "epsilon": choice.epsilon,
                "delta": choice.delta,
                "mechanism": choice.name,
                "classes": task.label_list,
            }
        )


def _of_more(model: ReserveModel, strength: float, scale: float) -> ConvexModel:
    """Return the model with the reserves of 1 / ``scale`` times as many records."""
    assert isinstance(model, ConvexModel)
    settings = replace(model.settings, regularization=strength)
    return ConvexModel(settings, model.weights, model.eigenvalue / scale)


def _answerable(task: Task) -> Task:
    """Return a task without its words, of which a mechanism answers, if only by a coin."""
    total = task.guarantee
    epsilon = max(total.epsilon, _LEAST_EPSILON * (task.answers or 1))
    return replace(without_schema(task), guarantee=replace(total, epsilon=epsilon))


def _convex(task: Task, regularization: float) -> dict[str, Any]:
    return {
        "epsilon": 1.0,
        "classes": range(task.classes),
        "counting": task.counting,
        "regularization": regularization,
        "features": PublicReference(schema=task.schema, rows=task.rows),
    }


def _least(dimension: int) -> float:
    """Return a regularization at which rounding is proved to be small, whatever the records."""
    return max(1.0, dimension / 30.0)


def _strength(task: Task, dimension: int) -> float:
    """Return the regularization: the distance at which 19 of 20 labels are right.

    About half of the labels have a larger one then (docs/results/certified/beside-public.md).
    """
    total = task.guarantee
    needed = enough_distance(
        classes=task.classes,
        epsilon=total.epsilon,
        delta=total.delta,
        answers=task.answers or 1,
    )
    needed *= 2.0 if task.counting == "replace" else 1.0
    return min(max(_least(dimension), needed), 1e6)


def _choice(task: Task) -> MechanismChoice:
    total = task.guarantee
    return calibrated_choice(
        "auto",
        classes=task.classes,
        epsilon=total.epsilon,
        delta=total.delta,
        answers=task.answers or 1,
    )
