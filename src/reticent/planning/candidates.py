"""What a method has to offer so that ``reticent.plan`` can try it, and which methods there are."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Protocol, runtime_checkable

from reticent.core.arrays import Array
from reticent.core.errors import InvalidInput
from reticent.core.extras import how_to_install
from reticent.core.guarantees import AddRemove, Replace
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.systems.scores import Predictions

GROUP = "reticent.candidates"
"""Entry point group: each entry names a function without arguments that returns a list of
candidates.
"""


class PublicUse(StrEnum):
    """What a method does with public rows, which decides how stand-ins are dealt out."""

    ROWS = "rows"
    LABELS_ALONE = "labels alone"
    LABELS_TOO = "labels too"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Requirements:
    """What must be there before a method can be tried.

    Attributes:
        public: ``ROWS`` (public rows without labels), ``LABELS_ALONE`` (labelled public rows and no
            private record), ``LABELS_TOO`` (both), ``NOTHING`` (what it answers does not depend on
            how many rows there are).
        limited: whether it answers a number of queries that is fixed beforehand.
        delta: whether it needs a delta above 0.
        replace: whether it also has a guarantee for replaced records.
        slow: whether it enters only after the quick ones have been tried.
        labels: the number of labels that it is made for, or None for any.
        module: a module that an extra installs, or None.
        extra: the name of that extra.
    """

    public: PublicUse = PublicUse.ROWS
    limited: bool = False
    delta: bool = True
    replace: bool = True
    slow: bool = False
    labels: int | None = None
    module: str | None = None
    extra: str = ""

    def missing(self, task: Task, *, labelled: bool) -> str:
        """Why the method cannot be tried for ``task``, as a phrase; "" where it can.

        Args:
            task: what is wanted.
            labelled: whether the public rows have labels.

        Example:
            >>> from reticent.core import AddRemove, Guarantee
            >>> task = Task(Guarantee(1.0, 0.0, AddRemove()), 1000, 200, 2, 5)
            >>> Requirements().missing(task, labelled=True)
            'needs delta above 0'
        """
        needs_labels = self.public in (PublicUse.LABELS_ALONE, PublicUse.LABELS_TOO)
        adjacency = task.guarantee.adjacency
        if needs_labels and not labelled:
            return "needs labels of public rows"
        if self.delta and task.guarantee.delta == 0:
            return "needs delta above 0"
        if isinstance(adjacency, Replace) and not self.replace:
            return "has no guarantee for replaced records"
        if self.delta and isinstance(adjacency, AddRemove | Replace) and adjacency.records != 1:
            return "is calibrated for one record here"
        if self.limited and task.answers is None:
            return "answers a number of queries that is fixed beforehand, and none was given"
        if self.labels is not None and task.classes != self.labels:
            return f"is made for {self.labels} labels"
        if self.module is not None and importlib.util.find_spec(self.module) is None:
            return f"needs an extra: {how_to_install(self.extra)}"
        return ""


@runtime_checkable
class Candidate(Protocol):
    """A method that ``plan`` can try on public stand-ins.

    Attributes:
        name: short and unique, such as "cells".
        line: what it does, in one sentence.
        protects: what its releases protect, in one phrase.
        requirements: what must be there.
    """

    @property
    def name(self) -> str:
        """Short and unique."""

    @property
    def line(self) -> str:
        """What it does, in one sentence."""

    @property
    def protects(self) -> str:
        """What its releases protect, in one phrase."""

    @property
    def requirements(self) -> Requirements:
        """What must be there."""

    def settings(self, task: Task) -> Sequence[Settings]:
        """The settings to try, from public numbers only; plain JSON values."""

    def evaluate(
        self,
        settings: Settings,
        tasks: Sequence[Task],
        stand_ins: StandIns,
        queries: Array,
        *,
        noise_scale: float,
        seeds: Sequence[int],
    ) -> list[list[Predictions]]:
        """Predictions for ``queries``, for each task and each seed.

        Noise that the real method adds to a sum over ``task.n_private`` records is multiplied by
        ``noise_scale`` = stand-ins / n_private, so that beside the smaller sum it has the
        effect that it will have beside the larger one. Numbers of neighbours and of records are
        multiplied by it too.

        Args:
            settings: one of ``self.settings``.
            tasks: several totals and numbers of answers, so that work can be shared.
            stand_ins: rows in the places of public rows and private records.
            queries: shape (q, d).
            noise_scale: in (0, 1] as a rule.
            seeds: of the noise, one for each draw.
        """

    def estimator(self, settings: Settings, task: Task) -> Any:
        """The unfitted estimator for the real records, or None where the package has this method
        only to compare with.
        """


def all_candidates() -> tuple[Candidate, ...]:
    """The package's own candidates, and those that other packages have registered in the entry
    point group ``reticent.candidates``.

    Raises:
        InvalidInput: a registered object that is no candidate, or a name that is there twice.
    """
    found = [*_own(), *_registered()]
    for candidate in found:
        if not isinstance(candidate, Candidate):
            raise InvalidInput(
                f"candidates: expected objects with the attributes of Candidate, got "
                f"{type(candidate).__name__}"
            )
    names = [candidate.name for candidate in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"candidates: these names are there twice: {', '.join(twice)}")
    return tuple(found)


def _own() -> list[Candidate]:
    from reticent.planning.certified import Certified, ConvexCertified
    from reticent.planning.constant import Constant
    from reticent.planning.dpsgd import DpSgd
    from reticent.planning.individual_knn import IndividualKNN
    from reticent.planning.private_knn import Pate, PrivateKNN
    from reticent.planning.public_rows import PublicRows
    from reticent.planning.query_votes import query_votes
    from reticent.planning.released_models import released_models

    quick: list[Candidate] = [Constant(), PublicRows(), *released_models(), *query_votes()]
    slow: list[Candidate] = [PrivateKNN(), IndividualKNN(), Pate()]
    slow += [ConvexCertified(), Certified(), DpSgd()]
    return [*quick, *slow]


@cache
def _registered() -> tuple[Any, ...]:
    return tuple(candidate for entry in entry_points(group=GROUP) for candidate in entry.load()())
