"""The uses of private records that ``reticent.plan`` compares."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

import numpy as np
from typing_extensions import override

from reticent.core.checks import positive
from reticent.core.guarantees import AddRemove, Replace
from reticent.planning.parts import PublicParts
from reticent.planning.tasks import Settings, Task
from reticent.systems.scores import Predictions

Answers = list[list[Predictions]]
"""Predictions for all public rows, for each task and draw of the noise."""


class PublicUse(StrEnum):
    """The use that a method makes of public rows."""

    ROWS = "rows"
    LABELS_ALONE = "labels alone"
    LABELS_TOO = "labels too"
    NOTHING = "nothing"


class NoTime(Exception):
    """The time was over before a method had been tried to the end."""


class Limit:
    """The CPU time that a plan may take, from now on.

    Args:
        seconds: the most, above 0.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self._begun = positive(seconds, name="seconds"), time.process_time()

    @property
    def spent(self) -> float:
        """The CPU seconds since the beginning."""
        return time.process_time() - self._begun

    def check(self) -> None:
        """Raise NoTime if the time is over."""
        if self.spent > self.seconds:
            raise NoTime


class PlanMethod(ABC):
    """A way to release something, as a plan compares it.

    Attributes:
        name: unique name in a few words.
        line: description in one line.
        uses: use of public rows.
        limited: whether it answers a number of queries that is fixed beforehand.
        slow: whether ``plan_inputs`` tries it after the others.
    """

    name: str
    line: str
    uses: PublicUse = PublicUse.ROWS
    slow: bool = False
    limited: ClassVar[bool] = False

    @property
    def protects(self) -> str:
        """A phrase for the data that its releases protect, or for what leaves of an input."""
        return self.line

    def missing(self, task: Task, *, labelled: bool) -> str:
        """Return a phrase on why the method cannot be tried for ``task``, or "" if it can.

        Args:
            task: the task.
            labelled: whether the public rows have labels.
        """
        return ""

    @abstractmethod
    def answers(self, tasks: Sequence[Task], parts: Any) -> Answers:
        """Return predictions for all public rows, each by models that did not see the row's label.

        Args:
            tasks: several totals and numbers of answers, so that work can be shared.
            parts: public rows in their roles.

        Raises:
            NoTime: the time is over.
        """

    def settings(self, task: Task) -> Settings:
        """Return settings that are not the estimator's own defaults, for the reader."""
        return {}

    def estimator(self, task: Task) -> Any:
        """Return the unfitted estimator, or None if the package has only a baseline."""
        return None


class RecordMethod(PlanMethod):
    """A way to make labels or a model from private records.

    The real method adds noise to a sum over ``task.n_private`` records. In ``answers`` the sum is
    smaller, so the noise is multiplied by stand-ins / n_private and has the same effect.

    Attributes:
        protects: phrase for the data that its releases protect.
        delta: whether it needs delta above 0.
        replace: whether it also has a guarantee for replaced records.
        labels: the number of labels that it is made for, or None for any.
    """

    protects = "every private record, by the noise of the released model"
    uses = PublicUse.LABELS_TOO
    delta: ClassVar[bool] = True
    replace: ClassVar[bool] = True
    labels: ClassVar[int | None] = None

    @override
    def missing(self, task: Task, *, labelled: bool) -> str:
        adjacency = task.guarantee.adjacency
        if self.uses in (PublicUse.LABELS_ALONE, PublicUse.LABELS_TOO) and not labelled:
            return "needs labels of public rows"
        if self.delta and task.guarantee.delta == 0:
            return "needs delta above 0"
        if isinstance(adjacency, Replace) and not self.replace:
            return "has no guarantee for replaced records"
        if isinstance(adjacency, AddRemove | Replace) and adjacency.records != 1:
            return "is calibrated for one record here"
        if self.limited and task.answers is None:
            return "answers a number of queries that is fixed beforehand, and none was given"
        if self.labels is not None and task.classes != self.labels:
            return f"is made for {self.labels} labels"
        return ""


_Some = TypeVar("_Some", bound=PlanMethod)


def shares_alone(tasks: Sequence[Task], parts: Any) -> Answers:
    """Return the shares of all public labels, for every row and task."""
    counts = np.bincount(parts.codes, minlength=parts.task.classes) + 1.0
    one = np.tile(counts / counts.sum(), (len(parts.rows), 1))
    return [[Predictions.of(one)]] * len(tasks)


class Constant(RecordMethod):
    """The shares of the labels among public rows, whatever the query."""

    name = "constant"
    line = "the same shares of labels for every query"
    protects = "nothing, because it reads no private record"
    uses = PublicUse.NOTHING
    delta = False

    @override
    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        return shares_alone(tasks, parts)


class PublicModels(RecordMethod):
    """The pool of public models, no private record."""

    name = "public models alone"
    line = "a pool of ordinary models of the labelled public rows"
    protects = "nothing, because it reads no private record"
    uses = PublicUse.LABELS_ALONE

    @override
    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        return [[Predictions.of(np.exp(parts.offsets))]] * len(tasks)

    def estimator(self, task: Task) -> Any:
        """Return the pool, for the labelled *public* rows."""
        from reticent.systems.votes.public_start import PublicModelsClassifier

        return PublicModelsClassifier(**started(task))


class PublicStart(RecordMethod):
    """A few noisy gradients from the public models."""

    name = "public start"
    line = "a pool of public models, moved by a few noisy gradients of the private records"

    @override
    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        return _by_total(tasks, parts, alone=False)

    def estimator(self, task: Task) -> Any:
        """Return the unfitted ``PublicStartClassifier``."""
        from reticent.systems.votes.public_start import PublicStartClassifier

        return PublicStartClassifier(**started(task))


class ConstantStart(RecordMethod):
    """The same gradients from the shares of labels."""

    name = "start from the constant"
    line = "noisy gradients of the private records in public features, from the shares of labels"
    uses = PublicUse.ROWS

    @override
    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        return _by_total(tasks, parts, alone=True)

    def settings(self, task: Task) -> Settings:
        """Return the pool, which has no public model."""
        return {"pool": []}

    def estimator(self, task: Task) -> Any:
        """Return the unfitted ``PublicStartClassifier`` without a public model."""
        from reticent.systems.votes.public_start import PublicStartClassifier

        return PublicStartClassifier(pool=[], **started(task))


def total(task: Task) -> dict[str, Any]:
    """Return the common arguments of every estimator of a task."""
    from reticent.systems.features import Features

    return {
        "epsilon": task.guarantee.epsilon,
        "delta": task.guarantee.delta,
        "classes": task.label_list,
        "counting": task.counting,
        "features": None if task.schema is None else Features(schema=task.schema),
    }


def started(task: Task) -> dict[str, Any]:
    """Return arguments of ``PublicStartClassifier`` for a task."""
    return {**total(task), "rows": task.rows, "records": task.n_private}


def _by_total(tasks: Sequence[Task], parts: PublicParts, *, alone: bool) -> Answers:
    totals = {task.guarantee: task for task in tasks}
    found = parts.started(list(totals.values()), alone=alone)
    known = {
        guarantee: [Predictions.of(draw) for draw in draws]
        for guarantee, draws in zip(totals, found, strict=True)
    }
    return [known[task.guarantee] for task in tasks]


def all_methods() -> tuple[RecordMethod, ...]:
    """Return the methods that are compared, quick ones first."""
    from reticent.planning.queries import CertifiedLabels, LinearVotes, ResidualVotes

    return (
        Constant(),
        PublicModels(),
        PublicStart(),
        ConstantStart(),
        LinearVotes(),
        ResidualVotes(),
        CertifiedLabels(),
    )


def possible(
    methods: Sequence[_Some], task: Task, *, labelled: bool = True
) -> tuple[list[_Some], list[tuple[str, str]]]:
    """Return the methods that can be tried, and names of the others with the reasons."""
    missing = {method: method.missing(task, labelled=labelled) for method in methods}
    left_out = [(method.name, why) for method, why in missing.items() if why]
    return [method for method, why in missing.items() if not why], left_out
