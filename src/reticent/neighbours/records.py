"""The private records of a neighbour search. The order of two of them depends on no other
record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.checks import as_array, one_each
from reticent.core.errors import InvalidInput
from reticent.neighbours.exhaustive import Exhaustive
from reticent.neighbours.integer_points import Points, check_points

_AT_ONCE = 2**10
"""Number of records whose bytes are held at once."""


@dataclass(frozen=True, eq=False)
class Records:
    """Points with votes, ranked by a digest of the record itself. ``Records.of`` makes them.

    The place in this order breaks ties between equal distances. Records are ranked by SHA-256 of
    (unit key, point, vote), so the order of two records is settled by those two alone. Adding or
    removing a third moves nobody past anybody. Records with equal digests are equal in everything
    that counts, and their order is of no consequence. A place in the *caller's* list would not do,
    because there a record's number changes with those before it. So every split into blocks gives
    the same lists of nearest records, the same coins for them and the same votes.

    Attributes:
        candidates: the points, in the caller's order.
        places: shape (n,) uint32, the place of each of them.
        votes: shape (n,) int64, a label, or shape (n, c) int64, steps of vote for each of c labels,
            by place.
        units: shape (n,) int64, equal numbers for records of one unit (a person), by place, or None
            where every record is its own unit.
    """

    candidates: Exhaustive
    places: npt.NDArray[np.uint32]
    votes: Integers
    units: Integers | None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def dimension(self) -> int:
        """Number of features."""
        return self.candidates.dimension

    @classmethod
    def of(
        cls,
        points: npt.ArrayLike,
        votes: npt.ArrayLike,
        persons: Sequence[Any] | npt.NDArray[Any] | None,
    ) -> Records:
        """Return ranked records.

        Args:
            points: shape (n, d), from ``PointGrid.points``.
            votes: shape (n,) labels 0, 1, ..., or shape (n, c) non-negative steps, integers.
            persons: one key per record, the same for all records of one unit, or None where every
                record is its own unit.

        Raises:
            InvalidInput: shapes or types that do not fit. Values are never shown.

        Example:
            >>> one = Records.of([[0, 1], [5, 5], [2, 2]], [0, 1, 1], None)
            >>> other = Records.of([[2, 2], [0, 1], [5, 5]], [1, 0, 1], None)
            >>> bool(one.places[0] == other.places[1]), one.votes.tolist() == other.votes.tolist()
            (True, True)
        """
        table = check_points(points, name="points")
        return cls.of_blocks([(table, votes)], len(table), persons, dimension=table.shape[1])

    @classmethod
    def of_blocks(
        cls,
        blocks: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]],
        records: int,
        persons: Sequence[Any] | npt.NDArray[Any] | None,
        *,
        dimension: int,
    ) -> Records:
        """Return records that come a block at a time.

        Args:
            blocks: points and votes as for ``of``. Each block is looked at once, in turn.
            records: number of records of all blocks.
            persons: one key for each of them, or None.
            dimension: number of features.

        Raises:
            InvalidInput: shapes or types that do not fit. Values are never shown.
        """
        names = None
        if persons is not None:
            names = [key_bytes(key) for key in one_each(persons, records, name="persons")]
        candidates = Exhaustive(dimension, room=records)
        keys = np.empty(records, dtype=np.uint64)
        votes: list[Integers] = []
        ends = [0]
        for points, given in blocks:
            table = check_points(points, name="points", dimension=dimension)
            votes.append(checked_votes(given, len(table)))
            part = slice(ends[-1], ends[-1] + len(table))
            ends.append(part.stop)
            if part.stop <= records:
                digests = record_digests(names and names[part], table, votes[-1])
                keys[part] = _keys(digests, part, records)
                candidates.add(table)
        if ends[-1] != records or len({own.shape[1:] for own in votes}) != 1:
            raise InvalidInput(
                f"blocks: expected {records} records and the same labels in each block, got "
                f"{ends[-1]}"
            )

        def digests_of(some: Integers) -> npt.NDArray[np.uint8]:
            persons = names and [names[place] for place in some]
            own = np.concatenate(votes)[some]
            return record_digests(persons, candidates.points[some], own)

        order = _rising(keys, digests_of)
        units = None if names is None else _numbers(names)[order]
        places = _inverse(order)
        del keys, order  # they take as much memory as the votes
        placed = np.empty((records, *votes[0].shape[1:]), dtype=np.int64)
        for first, last, own in zip(ends, ends[1:], votes, strict=False):
            placed[places[first:last]] = own
        return cls(candidates, places, placed, units)


def checked_votes(votes: npt.ArrayLike, records: int) -> Integers:
    """Return votes as int64, shape (n,) or (n, c), if there is one for each record and none below
    0.

    Raises:
        InvalidInput: something else. Values are never shown.
    """
    cast = as_array(votes, name="votes")
    if cast.ndim not in (1, 2) or cast.shape[:1] != (records,) or cast.dtype.kind not in "iub":
        raise InvalidInput(
            f"votes: expected integers of shape ({records},) or ({records}, c), "
            f"got dtype={cast.dtype} shape={cast.shape}"
        )
    cast = np.ascontiguousarray(cast, dtype=np.int64)
    if cast.size and cast.min() < 0:
        raise InvalidInput("votes: expected integers of at least 0")
    return cast


def record_digests(
    names: Sequence[bytes] | None, points: Points, votes: Integers
) -> npt.NDArray[np.uint8]:
    """Return the SHA-256 of every record (unit key, point, vote), shape (n, 32).

    Args:
        names: n persons as bytes, or None where every record is its own unit.
        points: shape (n, d), int16.
        votes: shape (n,) or (n, c), int64.
    """
    found = np.empty((len(points), 32), dtype=np.uint8)
    for start in range(0, len(points), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        keys = names and names[part]
        parts = [_row_bytes(points[part]), _row_bytes(votes[part])]
        if not keys:  # the lengths of all names, which are 0, in one array
            parts.insert(0, np.zeros((len(parts[0]), 8), dtype=np.uint8))
        rows = np.concatenate(parts, axis=1)
        held: Iterable[bytes] = rows.view(f"V{rows.shape[1]}").ravel().tolist()
        if keys:
            held = (
                len(key).to_bytes(8, "big") + key + row for key, row in zip(keys, held, strict=True)
            )
        digests = b"".join([sha256(row).digest() for row in held])
        found[part] = np.frombuffer(digests, np.uint8).reshape(-1, 32)
    return found


def _row_bytes(rows: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the bytes of each row, shape (n, bytes)."""
    flat = np.ascontiguousarray(rows).reshape(len(rows), -1)
    return flat.view(np.uint8)


def _keys(digests: npt.NDArray[np.uint8], part: slice, records: int) -> npt.NDArray[np.uint64]:
    """Return the first bits of digests, shape (n, 32), each followed by the record's number."""
    bits = np.uint64(records.bit_length())
    numbers = np.arange(part.start, part.stop, dtype=np.uint64)
    return (digests.view(">u8")[:, 0].astype(np.uint64) >> bits << bits) | numbers


def _rising(
    keys: npt.NDArray[np.uint64], digests: Callable[[Integers], npt.NDArray[np.uint8]]
) -> Integers:
    """Return the numbers of records by rising digest, in the memory of ``keys``. Equal ones keep
    their order.

    Nothing else settles the order of records that are equally near.

    Args:
        keys: shape (n,), from ``_keys``.
        digests: digests of some records, looked at where their first bits are equal.
    """
    # bit-exact: the voters at equal distances depend on this order.
    bits = np.uint64(len(keys).bit_length())
    keys.sort()
    again = [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(keys) - 1, _AT_ONCE):
        some = keys[start : start + _AT_ONCE + 1] >> bits
        again.append(start + np.flatnonzero(some[1:] == some[:-1]))
    keys &= (np.uint64(1) << bits) - np.uint64(1)
    order = keys.view(np.int64)
    tied = np.concatenate(again)
    tied = np.union1d(tied, tied + 1)
    if len(tied):
        alike = np.sort(order[tied])
        words = digests(alike).view(">u8").astype(np.uint64)
        order[tied] = alike[np.lexsort(words.T[::-1])]
    return order


def _inverse(order: Integers) -> npt.NDArray[np.uint32]:
    """Return for each number its place in ``order``, shape (n,)."""
    found = np.empty(len(order), dtype=np.uint32)
    for first in range(0, len(order), _AT_ONCE):
        some = order[first : first + _AT_ONCE]
        found[some] = np.arange(first, first + len(some))
    return found


def _numbers(names: Sequence[bytes]) -> Integers:
    """Return a number for each name, shape (n,), the same for equal ones."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def key_bytes(key: Any) -> bytes:
    """Return a key as bytes, different for different persons. Numbers and texts never coincide.

    Raises:
        InvalidInput: neither text, bytes nor integer. Keys are never shown.

    Example:
        >>> key_bytes("7"), key_bytes(31)
        (b's7', b'i1f')
    """
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return (
            b"i" + f"{int(key):x}".encode()
        )  # Python writes integers of any size in this base alone
    raise InvalidInput(f"persons: expected texts, bytes or integers, got {type(key).__name__}")
