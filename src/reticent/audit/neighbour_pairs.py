"""Pairs of neighbours for an audit: given, drawn from a schema, or searched around a data set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
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


def checked_pairs(pairs: Iterable[Any]) -> tuple[NeighbourPair, ...]:
    """Return pairs from (first, second), ``{"first": ..., "second": ...}`` or ``NeighbourPair``.

    Raises:
        InvalidInput: none, more than 1,024, or something else.
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
    if not found:
        raise InvalidInput("neighbours: expected at least one pair, got none")
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
    lowest = {name: pair[0] for name, pair in ends.items()}
    highest = {name: pair[1] for name, pair in ends.items()}
    found = [NeighbourPair(lowest, highest, "opposite ends of every column")]
    for attribute in schema.attributes:
        names = attribute.names if isinstance(attribute, OneHot) else (attribute.name,)
        other = {**lowest, **{name: ends[name][1] for name in names}}
        found.append(NeighbourPair(lowest, other, f"the two ends of {attribute.name!r}"))
    return tuple(found)


def searched_pairs(
    data_set: Sequence[Any], *, replace: bool, person: str | None = None
) -> tuple[NeighbourPair, ...]:
    """Return neighbours of a data set, a list of numbers or of records, to search among.

    A record is a number, a list or an object. Tried are one record less, one record more, one
    record
    changed, and all records of one person less. A record that is added or changed gets the least or
    the greatest value seen in every column, 0, or turned signs.

    Args:
        data_set: the records.
        replace: whether neighbours differ by a changed record, in place of one more or less.
        person: the key of whose record it is, where records are objects and the unit is a person.

    Raises:
        InvalidInput: no list, or records of several kinds.
    """
    records = list(data_set)
    if not isinstance(data_set, Sequence) or isinstance(data_set, str | bytes):
        raise InvalidInput("neighbours: expected a list of records to search around")
    found: list[NeighbourPair] = []
    if person is not None:
        persons = list(dict.fromkeys(str(record[person]) for record in records))
        sizes = {one: sum(str(r[person]) == one for r in records) for one in persons}
        largest = max(persons, key=sizes.__getitem__, default=None)
        for one in list(dict.fromkeys([*([] if largest is None else [largest]), *persons[:2]])):
            rest = [record for record in records if str(record[person]) != one]
            found.append(NeighbourPair(records, rest, f"all {sizes[one]} records of one person"))
        return checked_pairs(found)
    for words, extreme in _extremes(records):
        if replace and records:
            changed = [extreme, *records[1:]]
            found.append(NeighbourPair(records, changed, f"the first record changed to {words}"))
        elif not replace:
            found.append(NeighbourPair([*records, extreme], records, f"one record more, {words}"))
    if replace and len(records) > 1:
        pairs = list(_extremes(records))
        one, other = pairs[0][1], pairs[1][1]
        found.insert(
            0,
            NeighbourPair(
                [one, *records[1:]], [other, *records[1:]], "one record at either extreme"
            ),
        )
    if not replace and records:
        found.append(NeighbourPair(records, records[1:], "the first record less"))
        found.append(NeighbourPair(records[:1], [], "one record against none"))
    return checked_pairs(found)


def _extremes(records: list[Any]) -> Iterator[tuple[str, Any]]:
    """Return records at boundary values, with words."""
    if not records:
        yield "0", 0
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
