"""Columns of labels as whole numbers: class labels by their place, and targets of regression in
steps of a public range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.systems.record_labels import Classes, record_labels
from reticent.training.public_space import range_of

TARGET_STEPS = 2.0**12
"""Grid steps in half of a range of targets."""

_LISTS = (list, tuple, range, np.ndarray)


class Output(Protocol):
    """One column of labels, and the sums of what records have for it."""

    @property
    def width(self) -> int:
        """Number of coordinates."""

    def codes(self, column: npt.ArrayLike, rows: int) -> Integers:
        """Labels as whole numbers, shape (rows,); refuses others."""

    def contrast(self, sums: Array) -> Array:
        """Sums of vectors less what is common to all coordinates, shape (m, width)."""


@dataclass(frozen=True, eq=False)
class ClassOutput:
    """A column of class labels.

    Attributes:
        classes: shape (K,), the labels in rising order, public.
    """

    classes: npt.NDArray[Any]

    @property
    def width(self) -> int:
        """K."""
        return len(self.classes)

    def codes(self, column: npt.ArrayLike, rows: int) -> Integers:
        """Places of labels in ``classes``."""
        return record_labels(column, rows, self.classes.tolist())[1]

    def contrast(self, sums: Array) -> Array:
        """Less their mean over labels, which is noise."""
        return np.asarray(sums - sums.mean(axis=1, keepdims=True))


@dataclass(frozen=True)
class RangeOutput:
    """A column of targets, cut to a public range; a record's code is its target less the
    middle, in steps of half the range.

    Attributes:
        lower, upper: the range.

    Example:
        >>> income = RangeOutput(0.0, 100.0)
        >>> (income.codes([50.0, 75.0, 1e9], 3) / TARGET_STEPS).tolist()
        [0.0, 0.5, 1.0]
        >>> income.targets(np.array([0.5])).tolist()
        [75.0]
    """

    lower: float
    upper: float

    width: ClassVar[int] = 1

    @property
    def half(self) -> float:
        """Half of the range."""
        return 0.5 * (self.upper - self.lower)

    def codes(self, column: npt.ArrayLike, rows: int) -> Integers:
        """Targets in grid steps, from -``TARGET_STEPS`` to ``TARGET_STEPS``; those beyond the range
        are cut to it.
        """
        values = finite_array(column, name="y", ndim=1, allow_empty=True)
        if len(values) != rows:
            raise InvalidInput(f"y: expected one target per record, got {len(values)} for {rows}")
        with np.errstate(over="ignore"):
            shares = (values - (self.lower + self.half)) / self.half
        return np.rint(np.clip(shares, -1.0, 1.0) * TARGET_STEPS).astype(np.int64)

    def contrast(self, sums: Array) -> Array:
        """As they are."""
        return sums

    def targets(self, shares: Array) -> Array:
        """Numbers of halves of the range as targets within it."""
        return np.clip(self.lower + self.half + self.half * shares, self.lower, self.upper)


@dataclass(frozen=True, eq=False)
class Columns:
    """All columns of labels of one fit.

    Attributes:
        outputs: one for each column.
        several: whether labels have an axis for columns, be it of length 1.
    """

    outputs: tuple[Output, ...]
    several: bool

    @property
    def width(self) -> int:
        """Coordinates of all columns' vectors."""
        return sum(output.width for output in self.outputs)

    @property
    def parts(self) -> tuple[slice, ...]:
        """Which of those coordinates are whose."""
        ends = np.cumsum([output.width for output in self.outputs]).tolist()
        return tuple(
            slice(end - output.width, end) for end, output in zip(ends, self.outputs, strict=True)
        )

    def codes(self, y: npt.ArrayLike | None, rows: int) -> Integers:
        """Labels as whole numbers, shape (rows,), or (rows, columns) for ``several``.

        Raises:
            InvalidInput: none, other shapes, or labels that there are not. They are never shown.
        """
        if not self.several:
            return self.outputs[0].codes(present(y), rows)
        table = label_table(y, rows, len(self.outputs))
        return np.column_stack(
            [output.codes(table[at], rows) for at, output in enumerate(self.outputs)]
        )

    def each(self, codes: Integers) -> list[tuple[Output, Integers]]:
        """Every column with its codes."""
        found = list(codes.T) if self.several else [codes]
        return list(zip(self.outputs, found, strict=True))


def class_columns(
    y: npt.ArrayLike | None, rows: int, classes: Classes | Sequence[Sequence[Any]]
) -> tuple[Columns, Integers]:
    """Columns of class labels, and the records' as whole numbers.

    Args:
        y: shape (rows,), or (rows, L) with a list of labels for each of L columns.
        rows: how many records.
        classes: a public list of labels, a list of L such lists, or "observed" for one column.

    Raises:
        InvalidInput, InvalidParameter: as of ``record_labels``.

    Example:
        >>> columns, codes = class_columns([["no", 2], ["yes", 1]], 2, [("no", "yes"), (1, 2)])
        >>> codes.tolist()
        [[0, 1], [1, 0]]
    """
    if not is_several(classes):
        known, codes = record_labels(y, rows, classes)
        return Columns((ClassOutput(known),), several=False), codes
    table = label_table(y, rows, len(classes))
    found = [record_labels(column, rows, list(classes[at])) for at, column in enumerate(table)]
    columns = Columns(tuple(ClassOutput(known) for known, _ in found), several=True)
    return columns, np.column_stack([codes for _, codes in found])


def is_several(classes: Any) -> bool:
    """Whether ``classes`` is a list of lists of labels, one for each column."""
    return (
        isinstance(classes, (list, tuple))
        and len(classes) > 0
        and all(isinstance(entry, _LISTS) for entry in classes)
    )


def range_columns(
    y: npt.ArrayLike | None, rows: int, target_range: Any
) -> tuple[Columns, Integers]:
    """Columns of targets, and the records' as whole numbers.

    Args:
        y: shape (rows,) or (rows, L), numbers.
        rows: how many records.
        target_range: public (lower, upper) ends, numbers or one for each of L columns.

    Raises:
        InvalidInput: no targets, another number of them, or no finite numbers. They are never
            shown.
        InvalidParameter: no such range.
    """
    values = finite_array(present(y), name="y", allow_empty=True)
    if values.ndim not in (1, 2) or len(values) != rows or values.shape[1:] == (0,):
        raise InvalidInput(
            f"y: expected one target, or one row of them, for each of {rows} records, got "
            f"shape={values.shape}"
        )
    several = values.ndim == 2
    ends = range_of(target_range, values.shape[1] if several else 1, name="target_range")
    if ends is None:
        raise InvalidParameter(
            "target_range: expected public (lower, upper) ends of the targets, got none; they may "
            "not come from the private records"
        )
    outputs = tuple(
        RangeOutput(lower, upper) for lower, upper in zip(*(e.tolist() for e in ends), strict=True)
    )
    columns = Columns(outputs, several)
    return columns, columns.codes(values, rows)


def present(y: npt.ArrayLike | None) -> npt.ArrayLike:
    """``y``, which must not be None."""
    if y is None:
        raise InvalidInput(
            "y: expected labels; this estimator requires y to be passed, but the target y is None"
        )
    return y


def label_table(y: npt.ArrayLike | None, rows: int, columns: int) -> list[npt.NDArray[Any]]:
    """The columns of ``y``, shape (rows,) each.

    Raises:
        InvalidInput: no table of that shape.
    """
    given = present(y)
    try:
        table = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
    except Exception as error:  # whatever an array-like raises when it is read
        raise InvalidInput(
            f"y: expected a table of {columns} columns, got {type(given).__name__}"
        ) from error
    if table.shape != (rows, columns):
        raise InvalidInput(
            f"y: expected {columns} labels for each of {rows} records, got shape={table.shape}"
        )
    # Entries of one column have one kind; those of a row need not.
    mixed = table.dtype.kind == "O"
    return [np.array(column.tolist()) if mixed else column for column in table.T]
