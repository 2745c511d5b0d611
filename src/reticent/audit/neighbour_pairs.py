"""Pairs of neighbours for an audit: given, drawn from a schema, or searched around a data set."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.core.errors import InvalidInput
from reticent.core.files import read_regular
from reticent.tables.attributes import Hashed, Instant, Numeric, OneHot, Truth
from reticent.tables.schema import TabularSchema

_MOST_PAIRS = 1024
_LARGEST_FILE = 2**28


@dataclass(frozen=True)
class NeighbourPair:
    """Two neighbouring data sets.

    Attributes:
        first, second: the data sets, as the audited mechanism takes them.
        name: their difference, in words.
    """

    first: Any
    second: Any
    name: str

    def copied(self, first: bool) -> Any:
        """Return a copy of one of the two, which a subject may change.

        Raises:
            InvalidInput: a data set that cannot be copied.
        """
        try:
            return deepcopy(self.first if first else self.second)
        except TypeError as error:
            raise InvalidInput(
                f"neighbours: expected data sets that can be copied, for each draw; {error}"
            ) from error

    @property
    def alike(self) -> bool:
        """Whether plain data sets are equal, which no answer tells apart. False of arrays."""
        try:
            return bool(self.first == self.second)
        except Exception:  # arrays and frames have no one answer
            return False


def checked_pairs(pairs: Iterable[Any]) -> tuple[NeighbourPair, ...]:
    """Return pairs from (first, second), ``{"first": ..., "second": ...}`` or ``NeighbourPair``.

    Raises:
        InvalidInput: none, more than 1,024, two equal data sets, or something else.
    """
    found: list[NeighbourPair] = []
    for number, pair in enumerate(pairs, start=1):
        if number > _MOST_PAIRS:
            raise InvalidInput(f"neighbours: expected at most {_MOST_PAIRS} pairs")
        if isinstance(pair, NeighbourPair):
            found.append(pair)
        elif isinstance(pair, dict) and {"first", "second"} <= set(pair) <= _KEYS:
            name = pair.get("name", f"pair {number}")
            found.append(NeighbourPair(pair["first"], pair["second"], str(name)))
        elif isinstance(pair, tuple) and len(pair) == 2:
            found.append(NeighbourPair(*pair, f"pair {number}"))
        else:
            raise InvalidInput(
                f'neighbours: expected {{"first": ..., "second": ...}} as pair {number}'
            )
        if found[-1].alike:
            raise InvalidInput(f"neighbours: both data sets of pair {number} are equal")
    if not found:
        raise InvalidInput("neighbours: expected at least one pair of different data sets")
    return tuple(found)


_KEYS = {"first", "second", "name"}


def read_pairs(path: str | Path) -> tuple[NeighbourPair, ...]:
    """Read pairs from a file of JSON lines, ``{"first": ..., "second": ..., "name": ...}``, where a
    name may be missing.
    """
    try:
        lines = read_regular(path, most=_LARGEST_FILE).decode("utf-8", "replace").splitlines()
    except InvalidInput as error:
        raise InvalidInput(f"neighbours={str(path)!r}: {error}") from error
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except ValueError as error:
            raise InvalidInput(f"{str(path)!r}, line {number}: expected JSON") from error
    return checked_pairs(found)


def schema_pairs(schema: TabularSchema) -> tuple[NeighbourPair, ...]:
    """Return pairs of rows, as objects by column, that differ in one column or in all of them.

    Each column's two ends are tried while the others stay at their first value. Rows at opposite
    ends in every column come first.
    """
    lowest, highest = _ends(schema)
    found = [NeighbourPair(lowest, highest, "opposite ends of every column")]
    for attribute in schema.attributes:
        names = attribute.names if isinstance(attribute, OneHot) else (attribute.name,)
        other = {**lowest, **{name: highest[name] for name in names}}
        found.append(NeighbourPair(lowest, other, f"the two ends of {attribute.name!r}"))
    return _checked(found)


def _ends(schema: TabularSchema) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows of all lower and of all upper ends, by column."""
    ends: dict[str, tuple[Any, Any]] = {}
    for attribute in schema.attributes:
        if isinstance(attribute, OneHot):  # a column for each category, of which one is 1
            for place, column in enumerate(attribute.names):
                ends[column] = (float(place == 0), float(place == len(attribute.names) - 1))
        elif isinstance(attribute, Truth):
            ends[attribute.name] = (False, True)
        elif isinstance(attribute, Numeric | Instant):
            ends[attribute.name] = (attribute.lower, attribute.upper)
        elif isinstance(attribute, Hashed):  # any words at all
            ends[attribute.name] = ("a", "b")
        else:
            ends[attribute.name] = (attribute.categories[0], attribute.categories[-1])
    low, high = ({name: pair[side] for name, pair in ends.items()} for side in (0, 1))
    return low, high


def searched_pairs(
    data_set: Any,
    *,
    replace: bool,
    person: str | None = None,
    schema: TabularSchema | None = None,
) -> tuple[NeighbourPair, ...]:
    """Return neighbours of a data set to search among.

    A record is a number, a list or an object. Tried are one record less, one record more, one
    record changed, and all records of one person less. A record that is added or changed gets the
    least or the greatest value of every column, 0, or turned signs. A data set of one record tries
    none against it.

    Args:
        data_set: a list of records, or ``{"X": rows, "y": labels}`` as estimators take it. A row
            at an extreme then gets the rarest label.
        replace: whether neighbours differ by a changed record, in place of one more or less.
        person: the key of whose record it is, where records are objects and the unit is a person.
        schema: the public ends of columns, where records are objects. None takes the least and the
            greatest value seen.

    Raises:
        InvalidInput: no such data set, or records of several kinds.
    """
    if isinstance(data_set, Mapping) and set(data_set) == {"X", "y"}:
        return _labelled_pairs(data_set["X"], data_set["y"], replace=replace)
    if not isinstance(data_set, Sequence) or isinstance(data_set, str | bytes):
        raise InvalidInput(
            'neighbours: expected a list of records to search around, or {"X": rows, "y": labels}'
        )
    records = list(data_set)
    if person is not None:
        return _person_pairs(records, person)
    found: list[NeighbourPair] = []
    try:
        extremes = list(_extremes(records, None if schema is None else _ends(schema)))
    except (KeyError, IndexError, TypeError) as error:
        raise InvalidInput("neighbours: expected records of one kind") from error
    for words, extreme in extremes:
        if replace and records:
            changed = [extreme, *records[1:]]
            found.append(NeighbourPair(records, changed, f"the first record changed to {words}"))
        elif not replace:
            found.append(NeighbourPair([*records, extreme], records, f"one record more, {words}"))
    if replace and len(records) > 1:
        one, other = extremes[0][1], extremes[1][1]
        found.insert(
            0,
            NeighbourPair(
                [one, *records[1:]], [other, *records[1:]], "one record at either extreme"
            ),
        )
    if not replace and records:
        found.append(NeighbourPair(records, records[1:], "the first record less"))
    return _checked(found)


def _person_pairs(records: list[Any], person: str) -> tuple[NeighbourPair, ...]:
    try:
        owners = [str(record[person]) for record in records]
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"person={person!r}: expected records that are objects") from error
    sizes = Counter(owners)
    tried = dict.fromkeys([*(one for one, _ in sizes.most_common(1)), *list(sizes)[:2]])
    return checked_pairs(
        NeighbourPair(
            records,
            [record for record, owner in zip(records, owners, strict=True) if owner != one],
            f"all {sizes[one]} records of one person",
        )
        for one in tried
    )


def _labelled_pairs(X: Any, y: Any, *, replace: bool) -> tuple[NeighbourPair, ...]:
    """Return neighbours of rows with labels, at least one record in each, as an estimator needs."""
    if not len(X) == len(y) >= 2:
        raise InvalidInput("neighbours: expected at least two rows X, and a label y for each")
    rare = Counter(y).most_common()[-1][0]
    whole = {"X": X, "y": y}
    found = []
    for words, row in _extremes(list(X), None):
        if replace:
            other = {"X": [row, *X[1:]], "y": [rare, *y[1:]]}
            found.append(NeighbourPair(whole, other, f"the first record changed to {words}"))
        else:
            other = {"X": [*X, row], "y": [*y, rare]}
            found.append(NeighbourPair(other, whole, f"one record more, {words}"))
    if not replace:
        less = {"X": X[1:], "y": y[1:]}
        found.append(NeighbourPair(whole, less, "the first record less"))
    return _checked(found)


def _checked(found: list[NeighbourPair]) -> tuple[NeighbourPair, ...]:
    """Return those found whose data sets differ: an extreme may be what is there."""
    return checked_pairs(pair for pair in found if not pair.alike)


def _extremes(
    records: list[Any], ends: tuple[dict[str, Any], dict[str, Any]] | None
) -> Iterator[tuple[str, Any]]:
    """Return records at boundary values, with words, of objects at public ``ends`` if known."""
    if not records:
        yield "0", 0
        return
    if ends is not None:
        if not isinstance(records[0], Mapping):
            raise InvalidInput("schema: expected records that are objects, by column")
        yield "the upper ends of the schema", {**records[0], **ends[1]}
        yield "the lower ends of the schema", {**records[0], **ends[0]}
        return

    def mapped(change: Any) -> Any:
        first = records[0]
        if isinstance(first, dict):
            return {key: change([record[key] for record in records]) for key in first}
        if isinstance(first, list | tuple):
            return [change([record[i] for record in records]) for i in range(len(first))]
        return change(records)

    yield "the greatest of every column", mapped(_best(max))
    yield "the least of every column", mapped(_best(min))
    yield "0", mapped(lambda column: column[0] if _is_label(column) else 0)
    yield (
        "the greatest of every column, its sign turned",
        mapped(lambda column: column[0] if _is_label(column) else -max(map(abs, column))),
    )


def _best(pick: Any) -> Any:
    return lambda column: pick(column, key=str) if _is_label(column) else pick(column)


def _is_label(column: list[Any]) -> bool:
    return any(not isinstance(value, int | float) for value in column)
