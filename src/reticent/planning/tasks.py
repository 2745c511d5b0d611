"""What a plan is made for, and the rows that stand in for the records that it may not see."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import AddRemove, Guarantee, GuaranteeKind, Replace
from reticent.tables.schema import TabularSchema

Settings = Mapping[str, Any]

FEW_ROWS = 2000
"""Labelled public rows below which a plan says that it may be wrong."""
FEW_SHARE = 0.2
"""The same for public rows over private records."""


Radius = float | Mapping[str, float] | None


@dataclass(frozen=True)
class Inputs:
    """What is wanted for every single input, where inputs are protected and not records.

    Attributes:
        schema: of the rows.
        radius: as of ``PowerEncoder``; None for any two rows.
        chosen_by: the criterion of ``PowerEncoder`` that is nearest to the plan's.
        seed: of training.
    """

    schema: TabularSchema
    radius: Radius
    chosen_by: str
    seed: int


@dataclass(frozen=True)
class Task:
    """What is wanted, in public numbers only.

    Attributes:
        guarantee: total of everything that is released, ``AddRemove`` or ``Replace`` of records; or
            of one released input, where ``inputs`` is given.
        n_private: number of private records, which counts as public; at least 1, 0 for inputs.
        n_public: number of public rows that will be there when the method is fitted.
        classes: number of labels, at least 2.
        features: number of features, at least 1.
        answers: how many labels will ever be asked for; None for any number.
        lower, upper: ends of the features' public ranges, one for each; empty where they are not
            known.
        labels: the labels as private records have them, in the order of their numbers; empty where
            they are 0 to classes - 1.
        inputs: None where records are protected.

    Raises:
        InvalidParameter: numbers out of range, or a guarantee that is not about records, for a task
            of records.

    Example:
        >>> Task(Guarantee(1.0, 1e-5, AddRemove()), 1000, 200, 2, 5, answers=10).sensitivity
        1.0
    """

    guarantee: Guarantee
    n_private: int
    n_public: int
    classes: int
    features: int
    answers: int | None = None
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    labels: tuple[Any, ...] = ()
    inputs: Inputs | None = None

    def __post_init__(self) -> None:
        count(self.n_private, name="n_private", minimum=int(self.inputs is None))
        count(self.n_public, name="n_public", minimum=0)
        count(self.classes, name="classes", minimum=2)
        count(self.features, name="features")
        if self.answers is not None:
            count(self.answers, name="answers")
        if not len(self.lower) == len(self.upper) in (0, self.features):
            raise InvalidParameter(
                f"lower, upper: expected {self.features} ends each, got {len(self.lower)} and "
                f"{len(self.upper)}"
            )
        if len(self.labels) not in (0, self.classes):
            raise InvalidParameter(
                f"labels: expected {self.classes} or none, got {len(self.labels)}"
            )
        if self.inputs is None and not isinstance(self.guarantee.adjacency, AddRemove | Replace):
            raise InvalidParameter(
                "guarantee: expected one for records added, removed or replaced, got "
                f"{self.guarantee.adjacency.describe()}"
            )
        if self.guarantee.kind is not GuaranteeKind.DIFFERENTIAL_PRIVACY:
            raise InvalidParameter(
                f"guarantee: expected differential privacy, got {self.guarantee.kind.value}"
            )

    @property
    def wanted(self) -> Inputs:
        """What is wanted for inputs, of a task that is about them."""
        assert self.inputs is not None
        return self.inputs

    @property
    def promise(self) -> str:
        """The guarantee in a phrase."""
        guarantee = self.guarantee
        if self.inputs is None or not isinstance(guarantee.adjacency, Replace):
            return guarantee.describe()
        return (
            f"local differential privacy with epsilon={guarantee.epsilon:g}, "
            f"delta={guarantee.delta:g} for any two rows"
        )

    @property
    def sensitivity(self) -> float:
        """How far neighbours move a sum of contributions of norm 1: one for each record that they
        differ in, two where it is replaced.
        """
        adjacency = self.guarantee.adjacency
        assert isinstance(adjacency, AddRemove | Replace)
        return float(adjacency.records * (2 if isinstance(adjacency, Replace) else 1))

    @property
    def enough_public(self) -> int:
        """Labelled public rows from which on the order of close methods can be relied on.

        Example:
            >>> task = Task(Guarantee(1.0, 1e-5, AddRemove()), 20_000, 500, 2, 5)
            >>> task.enough_public
            4000
        """
        return max(FEW_ROWS, math.ceil(FEW_SHARE * self.n_private))

    @property
    def label_list(self) -> list[Any]:
        """The labels, as estimators take ``classes``.

        Example:
            >>> Task(Guarantee(1.0, 0.0, AddRemove()), 1, 1, 2, 1, labels=("no", "yes")).label_list
            ['no', 'yes']
        """
        return list(self.labels) or list(range(self.classes))

    @property
    def counting(self) -> str:
        """What neighbours are, as estimators take it."""
        return "replace" if isinstance(self.guarantee.adjacency, Replace) else "add-remove"

    def at(self, *, epsilon: float | None = None, answers: int | None = None) -> Task:
        """The same task at another total epsilon, or for another number of answers."""
        changed = self
        if epsilon is not None:
            changed = replace(changed, guarantee=replace(self.guarantee, epsilon=epsilon))
        return changed if answers is None else replace(changed, answers=answers)


@dataclass(frozen=True, eq=False)
class StandIns:
    """Public rows in the places that public rows and private records will have.

    Attributes:
        public_rows: shape (p, d), float64.
        public_labels: shape (p,), 0 to classes - 1; None where the method gets no public labels.
        private_rows: shape (s, d); public rows too, in the place of private records.
        private_labels: shape (s,).
        prepared: what candidates have computed from these rows already, such as centroids, by a
            key of their own.
    """

    public_rows: Array
    public_labels: Integers | None
    private_rows: Array
    private_labels: Integers
    prepared: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` returns, computed the first time that ``key`` is asked for.

        Example:
            >>> import numpy as np
            >>> rows = np.zeros((2, 1))
            >>> stand_ins = StandIns(rows, None, rows, np.zeros(2, dtype=np.int64))
            >>> stand_ins.once("mean", lambda: 1.0), stand_ins.once("mean", lambda: 2.0)
            (1.0, 1.0)
        """
        if key not in self.prepared:
            self.prepared[key] = make()
        return self.prepared[key]
