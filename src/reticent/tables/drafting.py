"""A first draft of a schema from rows that may be published.

A draft looks at values, so it may see public rows only. It is meant to be read, corrected and kept
under version control: a range that the documentation of the data states is better than one that
was seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import MAXYEAR, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import count
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.tables.attributes import Attribute, Categorical, Hashed, Instant, Numeric, Truth
from reticent.tables.cells import absent, instants, word_of
from reticent.tables.frames import listed, named_rows, names_of
from reticent.tables.schema import TabularSchema

_SKEWED = 20.0  # upper end over the 95th percentile, above which a logarithm is drafted
_TEXT_LENGTH = 40  # mean letters of a cell from which words are taken for running text
_IDENTIFIERS = 0.9  # share of different values from which words are taken for names of rows
_LARGEST = 1e300  # so that an end's power of ten, and that of a missing value, are doubles
_FEW_ROWS = 50  # with fewer rows, different words do not look like identifiers


class _Useless(InvalidInput):
    """A column from which nothing can be drafted."""


def schema_for(schema: Any, public_rows: Any) -> TabularSchema | None:
    """Return the schema of a table, drafted where it is needed, or None for numbers alone.

    Args:
        schema: the one that is given, or None.
        public_rows: rows that may be published, or None.

    Returns:
        ``schema`` where one is given. For a data frame with anything but finite numbers a draft,
        whose note names the columns from which nothing can be drafted. They are left out.

    Raises:
        InvalidParameter: ``schema`` is something else.
        InvalidInput: no column is left.
    """
    if schema is not None:
        if not isinstance(schema, TabularSchema):
            raise InvalidParameter(
                f"schema: expected a TabularSchema or None, got {type(schema).__name__}"
            )
        return schema
    if public_rows is None or names_of(public_rows) is None:
        return None
    table, _ = named_rows(public_rows)
    cells = np.asarray(table)
    if cells.dtype.kind in "biuf" and bool(np.isfinite(cells.astype(np.float64)).all()):
        return None
    return draft_schema(public_rows, leave_out=True)


def draft_schema(
    public_rows: Any,
    *,
    ignore: Iterable[str] = (),
    given: Iterable[Attribute] = (),
    missing: bool = True,
    most_categories: int = 50,
    buckets: int = 256,
    leave_out: bool = False,
) -> TabularSchema:
    """Return a draft for the columns of a public data frame.

    With ``leave_out`` a column from which nothing can be drafted is left out, and the note says so.

    - Numbers are ``Numeric``. Ends are rounded outward to a hundredth to a tenth of the span, and
      whole numbers stay whole. A column from 0 with a long tail gets a logarithm.
    - Truth values are ``Truth``. Dates and times are ``Instant``, rounded outward to years, months
      or days.
    - Words of few different values are ``Categorical``, with "(other)" for words that did not
      occur. Words of many are ``Hashed``. Running text and identifiers are refused, because nothing
      of them is worth a category.

    Arguments and errors are those of ``TabularSchema.from_frame``.
    """
    table, names = named_rows(public_rows)
    if names is None:
        raise InvalidInput("public_rows: expected a data frame whose columns have names")
    count(most_categories, name="most_categories", minimum=2)
    known, left_out = {attribute.name: attribute for attribute in given}, list(ignore)
    columns = names.tolist()
    strange = sorted({*left_out, *known}.difference(columns))
    if strange:
        raise InvalidInput(f"public_rows: has no column {', '.join(map(repr, strange))}")
    if len(table) == 0:
        raise InvalidInput("public_rows: expected at least one row, got none")
    draft = _Draft(missing, most_categories, buckets)
    attributes: list[Attribute] = []
    dropped: dict[str, str] = {}
    for place, name in enumerate(columns):
        if name in left_out:
            continue
        try:
            attributes.append(known[name] if name in known else draft.column(name, table[:, place]))
        except _Useless as reason:
            dropped[name] = str(reason)
    if dropped and not leave_out:
        raise InvalidInput("public_rows: " + "\n".join(dropped.values()))
    note = f"Drafted from {len(table)} public rows. Read it, and correct it, before it is used."
    if dropped:
        note += f" Left out, for they tell nothing: {listed(list(dropped))}."
    if not attributes:
        raise InvalidInput("public_rows: no column is left from which anything can be drafted")
    return TabularSchema(tuple(attributes), note=note, left_out=(*left_out, *dropped))


@dataclass(frozen=True)
class _Draft:
    missing: bool
    most_categories: int
    buckets: int

    def column(self, name: str, cells: npt.NDArray[Any]) -> Attribute:
        present = cells[~absent(cells)]
        values = present.tolist()
        if len(set(map(word_of, values))) < 2:
            raise _Useless(
                f"column {name!r} has fewer than two different values, so that "
                "nothing can be drafted from it; ignore it, or give its attribute"
            )
        kinds = {type(value) for value in values}
        if kinds <= {bool}:
            return Truth(name, self.missing)
        if kinds <= {int, float, bool}:
            return self._number(name, np.array(values, dtype=np.float64))
        if kinds <= {str}:
            return self._words(name, values)
        times = self._times(name, present)
        if times is None:
            raise InvalidInput(
                f"public_rows: column {name!r} holds neither numbers, truth values, dates nor "
                "words; ignore it, or give its attribute"
            )
        return times

    def _number(self, name: str, values: Array) -> Numeric:
        if not np.isfinite(values).all():
            raise InvalidInput(f"public_rows: column {name!r} holds infinity")
        if np.abs(values).max() > _LARGEST or np.ptp(values) < 1 / _LARGEST:
            raise InvalidInput(
                f"public_rows: column {name!r} holds numbers beyond {_LARGEST:g}, or differences "
                f"below {1 / _LARGEST:g}; ignore it, or give its attribute"
            )
        lower, upper = outward(float(values.min()), float(values.max()))
        if (values == np.floor(values)).all():
            lower, upper = math.floor(lower), math.ceil(upper)
        tail = float(np.quantile(values, 0.95)) - lower
        long = lower >= 0 and upper - lower > _SKEWED * max(tail, 1.0)
        code = -(10.0 ** (2 + max(4, math.ceil(math.log10(max(abs(lower), abs(upper)))))))
        return Numeric(
            name, lower, upper, "log" if long else "linear", code if self.missing else None
        )

    def _words(self, name: str, values: list[str]) -> Attribute:
        different = sorted(set(values))
        letters = sum(map(len, values)) / len(values)
        if len(different) > self.most_categories:
            if letters > _TEXT_LENGTH:
                raise _Useless(
                    f"column {name!r} holds running text (a mean of {letters:.0f} "
                    "letters); ignore it, or turn it into numbers first"
                )
            if len(values) >= _FEW_ROWS and len(different) > _IDENTIFIERS * len(values):
                raise _Useless(
                    f"column {name!r} has {len(different)} different words in "
                    f"{len(values)} rows, as names or identifiers have; ignore it, or give its "
                    "attribute as Hashed"
                )
            return Hashed(name, self.buckets, missing=self.missing)
        others = "(other)"
        categories = tuple(different) if others in different else (*different, others)
        if not self.missing:
            return Categorical(name, categories, other=others)
        nothing = "(missing)"
        categories = categories if nothing in categories else (*categories, nothing)
        return Categorical(name, categories, other=others, missing=nothing)

    def _times(self, name: str, cells: npt.NDArray[Any]) -> Instant | None:
        try:
            times = instants(cells, name=name)
        except InvalidInput:
            return None
        first, last = (
            datetime(1970, 1, 1) + timedelta(microseconds=float(end))
            for end in (times.min(), times.max())
        )
        lower, upper = outward_dates(first, last)
        return Instant(name, lower, upper, self.missing)


def outward(lower: float, upper: float) -> tuple[float, float]:
    """Return a range that contains ``lower`` to ``upper`` and has ends of few digits.

    Args:
        lower, upper: finite, lower < upper.

    Example:
        >>> outward(17.3, 88.9)
        (17.0, 89.0)
        >>> outward(0.0031, 0.0492)
        (0.003, 0.05)
    """
    digits = 1 - math.floor(math.log10(upper - lower))
    scale = 10.0 ** abs(digits)

    def end(steps: int) -> float:
        return steps / scale if digits >= 0 else steps * scale

    first, last = (
        round_to_step(value * scale if digits >= 0 else value / scale)
        for value, round_to_step in ((lower, math.floor), (upper, math.ceil))
    )
    # The products are rounded themselves, and the least numbers to 0.
    return end(first - (end(first) > lower)), end(last + (end(last) < upper))


def outward_dates(first: datetime, last: datetime) -> tuple[str, str]:
    """Return a range of whole years, months or days that contains both, as ISO 8601 texts.

    Example:
        >>> outward_dates(datetime(1994, 5, 2), datetime(2019, 11, 30))
        ('1994-01-01', '2020-01-01')
        >>> outward_dates(datetime(2019, 5, 2, 8), datetime(2019, 5, 7, 9))
        ('2019-05-02', '2019-05-08')
    """
    if last.year == MAXYEAR:  # in many tables 9999-12-31 means that something has not ended
        return first.date().isoformat(), f"{MAXYEAR}-12-31T23:59:59.999999"
    span = last - first
    if span > timedelta(days=2 * 365):
        return f"{first.year:04}-01-01", f"{last.year + 1:04}-01-01"
    if span > timedelta(days=62):
        year, month = (last.year, last.month + 1) if last.month < 12 else (last.year + 1, 1)
        return f"{first.year:04}-{first.month:02}-01", f"{year:04}-{month:02}-01"
    after = last.date() + timedelta(days=1)
    return first.date().isoformat(), after.isoformat()
