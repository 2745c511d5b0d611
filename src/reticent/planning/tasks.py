"""The task of a plan, in public numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reticent.core.checks import count
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import AddRemove, Guarantee, GuaranteeKind, Replace
from reticent.tables.schema import TabularSchema

Settings = Mapping[str, Any]
Radius = float | Mapping[str, float] | None

FEW_RECORDS, FEW_LABELS = 1000, 100
"""Fewest private records, and labelled public rows, for a decision by measurement."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The task for every single input, if inputs are protected and not records.

    Attributes:
        schema: schema of the rows.
        radius: radius of ``PowerEncoder``, or None for any two rows.
        chosen_by: the criterion of ``PowerEncoder`` that is nearest to the plan's.
        seed: seed of training.
    """

    schema: TabularSchema
    radius: Radius
    chosen_by: str
    seed: int


@dataclass(frozen=True)
class Task:
    """The task of a plan, in public numbers only.

    Attributes:
        guarantee: total of everything that is released, ``AddRemove`` or ``Replace`` of records, or
            total of one released input if ``inputs`` is given.
        n_private: number of private records, at least 1, or 0 for inputs. It counts as public.
        n_public: number of public rows that will be there when the method is fitted.
        classes: number of labels, at least 2.
        answers: number of labels that will ever be asked for, or None for any number.
        labels: labels as private records have them, in the order of their numbers, or empty if they
            are 0 to classes - 1.
        rows: kind of rows, as ``PublicStartClassifier`` takes it.
        schema: schema of the rows if they are not all numbers.
        inputs: task for inputs, or None if records are protected.

    Raises:
        InvalidParameter: numbers out of range, or a guarantee that is not about records, for a task
            of records.

    Example:
        >>> Task(Guarantee(1.0, 1e-5, AddRemove()), 1000, 200, 2, answers=10).counting
        'add-remove'
    """

    guarantee: Guarantee
    n_private: int
    n_public: int
    classes: int
    answers: int | None = None
    labels: tuple[Any, ...] = ()
    rows: str = "table"
    schema: TabularSchema | None = None
    inputs: Inputs | None = None

    def __post_init__(self) -> None:
        count(self.n_private, name="n_private", minimum=int(self.inputs is None))
        count(self.n_public, name="n_public", minimum=0)
        count(self.classes, name="classes", minimum=2)
        if self.answers is not None:
            count(self.answers, name="answers")
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
        """The task for inputs, if they are protected."""
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
    def few(self) -> bool:
        """Return whether records or labelled public rows are too few to decide by measurement."""
        return self.n_private < FEW_RECORDS or self.n_public < FEW_LABELS

    @property
    def label_list(self) -> list[Any]:
        """The labels, as estimators take ``classes``.

        Example:
            >>> Task(Guarantee(1.0, 0.0, AddRemove()), 1, 1, 2, labels=("no", "yes")).label_list
            ['no', 'yes']
        """
        return list(self.labels) or list(range(self.classes))

    @property
    def counting(self) -> str:
        """The neighbouring relation, as estimators take it."""
        return "replace" if isinstance(self.guarantee.adjacency, Replace) else "add-remove"

    def at(self, *, epsilon: float | None = None, answers: int | None = None) -> Task:
        """Return the same task at another total epsilon, or for another number of answers."""
        changed = self
        if epsilon is not None:
            changed = replace(changed, guarantee=replace(self.guarantee, epsilon=epsilon))
        return changed if answers is None else replace(changed, answers=answers)
