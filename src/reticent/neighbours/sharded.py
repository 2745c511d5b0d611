"""Records in shards, with the same neighbours as in one table, for more records than one matrix of
doubles holds or for several files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.checks import one_each
from reticent.core.errors import InvalidInput
from reticent.neighbours.exhaustive import Exhaustive, Found, Places
from reticent.neighbours.integer_points import Points, ShortPoints, check_short_points
from reticent.neighbours.records import checked_votes, key_bytes, record_digests, rising

_AT_ONCE = 2**16
"""Number of records whose distances are held at once."""

_SPARE = 2
"""Candidates are cut back once there are this many times as many as are asked for."""


@dataclass(frozen=True, eq=False)
class ShardedRecords:
    """``Records`` in several tables. ``ShardedRecords.of`` makes them.

    A record's place is the rank of its digest among those of *all* shards, which is its place in
    one table. So the lists of nearest records, the coins that are tossed for them and the votes are
    the same integers for every split of the records.

    Attributes:
        shards: integer points as int16, each of shape (n_s, d).
        places: the place of every record of each shard, shape (n_s,) int64.
        votes: votes by place, as in ``Records``.
        units: units by place, as in ``Records``.
    """

    shards: tuple[ShortPoints, ...]
    places: tuple[Integers, ...]
    votes: Integers
    units: Integers | None

    def __len__(self) -> int:
        return len(self.votes)

    @property
    def dimension(self) -> int:
        """Number of features."""
        return int(self.shards[0].shape[1])

    @classmethod
    def of(
        cls,
        shards: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]],
        persons: Sequence[Sequence[Any]] | None = None,
    ) -> ShardedRecords:
        """Return the records of all shards, ranked together.

        Args:
            shards: points, shape (n_s, d), from ``PointGrid.points``, and votes as for
                ``Records.of``. Each shard is looked at once, in turn.
            persons: one key for each record of each shard, the same for all records of one unit in
                any shard, or None where every record is its own unit.

        Raises:
            InvalidInput: no shards, or shapes or types that do not fit. Values are never shown.

        Example:
            >>> records = ShardedRecords.of([([[0, 1]], [0]), ([[5, 5], [2, 2]], [1, 1])])
            >>> len(records), records.dimension, sorted(records.votes.tolist())
            (3, 2, [0, 1, 1])
        """
        tables: list[ShortPoints] = []
        votes: list[Integers] = []
        digests: list[npt.NDArray[np.uint8]] = []
        numbers: dict[bytes, int] = {}
        units: list[Integers] = []
        for number, (points, given) in enumerate(shards):
            dimension = tables[0].shape[1] if tables else None
            table = check_short_points(points, name="points", dimension=dimension)
            own = checked_votes(given, len(table))
            if votes and own.shape[1:] != votes[0].shape[1:]:
                raise InvalidInput("votes: expected the same labels in every shard")
            names: Iterable[bytes] = repeat(b"", len(table))
            if persons is not None:
                mine = persons[number] if number < len(persons) else ()
                names = [key_bytes(key) for key in one_each(mine, len(table), name="persons")]
                units.append(
                    np.array(
                        [numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64
                    )
                )
            digests.append(record_digests(names, table, own))
            tables.append(table)
            votes.append(own)
        if not tables or (persons is not None and len(persons) != len(tables)):
            raise InvalidInput(
                f"shards: expected at least one, and persons for each or for none, got "
                f"{len(tables)} "
                f"and persons for {0 if persons is None else len(persons)}"
            )
        order = rising(np.concatenate(digests))
        digests.clear()
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        ends = np.cumsum([len(table) for table in tables])
        return cls(
            tuple(tables),
            tuple(np.split(places, ends[:-1])),
            np.concatenate(votes)[order],
            None if persons is None else np.concatenate(units)[order],
        )

    def blocks(self) -> Iterator[tuple[Points, Integers]]:
        """Yield points as float32 and their places, a few thousand records at a time."""
        for table, places in zip(self.shards, self.places, strict=True):
            for start in range(0, len(table), _AT_ONCE):
                part = slice(start, start + _AT_ONCE)
                yield table[part].astype(np.float32), places[part]


class ShardedCandidates:
    """Nearest records of all shards by one pass over them, as ``exhaustive.Candidates``.

    Each block of records is searched up to the distance within which enough were found so far, the
    farthest of them included. That distance only falls, and no record of the final list is farther,
    so none is missed.

    Args:
        records: records in shards.
    """

    def __init__(self, records: ShardedRecords) -> None:
        self._records = records

    def nearest(self, queries: Points, depth: int) -> Found:
        """Return candidates, as ``exhaustive.Candidates``."""
        limits = np.full(len(queries), np.iinfo(np.int64).max)
        kept: list[list[tuple[Integers, Integers]]] = [[] for _ in queries]
        waiting = np.zeros(len(queries), dtype=np.int64)
        for points, places in self._records.blocks():
            near = Exhaustive(points).within(queries, limits)
            for row, (found, distances) in enumerate(near):
                if not len(found):
                    continue
                kept[row].append((distances, places[found]))
                waiting[row] += len(found)
                if waiting[row] >= _SPARE * depth:
                    waiting[row], limits[row] = _cut(kept[row], depth)
        return [_joined(parts) for parts in kept]


def _cut(parts: list[tuple[Integers, Integers]], depth: int) -> tuple[int, int]:
    """Keep in ``parts`` the records no farther than the ``depth``-th nearest. Return their number,
    and the squared distance to search below from here on, which includes the farthest of them.
    """
    distances, places = (np.concatenate(column) for column in zip(*parts, strict=True))
    farthest = np.partition(distances, depth - 1)[depth - 1]
    inside = distances <= farthest
    parts[:] = [(distances[inside], places[inside])]
    return int(inside.sum()), int(farthest) + 1


def _joined(parts: list[tuple[Integers, Integers]]) -> tuple[Points, Places]:
    if not parts:
        return np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64)
    distances, places = (np.concatenate(column) for column in zip(*parts, strict=True))
    return distances.astype(np.float32), places
