"""The private records of a neighbour search. The order of two of them depends on no other
record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.checks import as_array, one_each
from reticent.core.errors import InvalidInput
from reticent.neighbours.exhaustive import Candidates, Exhaustive
from reticent.neighbours.integer_points import ShortPoints, check_short_points

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
        places: shape (n,) int64, the place of each of them.
        votes: shape (n,) int64, a label, or shape (n, c) int64, steps of vote for each of c labels,
            by place.
        units: shape (n,) int64, equal numbers for records of one unit (a person), by place, or None
            where every record is its own unit.
    """

    candidates: Candidates
    places: Integers
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
        table = check_short_points(points, name="points")
        held = Exhaustive(table[:0], room=len(table))
        return cls.of_blocks([(table, votes)], len(table), persons, candidates=held)

    @classmethod
    def of_blocks(
        cls,
        blocks: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]],
        records: int,
        persons: Sequence[Any] | npt.NDArray[Any] | None,
        *,
        candidates: Candidates,
    ) -> Records:
        """Return records that come a block at a time.

        Args:
            blocks: points and votes as for ``of``. Each block is looked at once, in turn.
            records: number of records of all blocks.
            persons: one key for each of them, or None.
            candidates: what takes the points in, still without any.

        Raises:
            InvalidInput: shapes or types that do not fit. Values are never shown.
        """
        names = None
        if persons is not None:
            names = [key_bytes(key) for key in one_each(persons, records, name="persons")]
        digests = np.empty((records, 32), dtype=np.uint8)
        votes: list[Integers] = []
        size = 0
        for points, given in blocks:
            table = check_short_points(points, name="points", dimension=candidates.dimension)
            part = slice(size, size + len(table))
            votes.append(checked_votes(given, len(table)))
            digests[part] = record_digests(names and names[part], table, votes[-1])
            candidates.add(table)
            size += len(table)
        if size != records or len({own.shape[1:] for own in votes}) != 1:
            raise InvalidInput(
                f"blocks: expected {records} records and the same labels in each block, got {size}"
            )
        order = rising(digests)
        places = np.empty_like(order)
        places[order] = np.arange(records)
        units = None
        if names is not None:
            numbers: dict[bytes, int] = {}
            units = np.array(
                [numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64
            )[order]
        return cls(candidates, places, np.concatenate(votes)[order], units)


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
    cast = np.ascontiguousarray(cast.astype(np.int64))
    if cast.size and cast.min() < 0:
        raise InvalidInput("votes: expected integers of at least 0")
    return cast


def record_digests(
    names: Sequence[bytes] | None, points: ShortPoints, votes: Integers
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


def rising(digests: npt.NDArray[np.uint8]) -> Integers:
    """Return the places of digests, shape (n, 32), by rising digest. Equal ones keep their order.

    Nothing else settles the order of records that are equally near.
    """
    # bit-exact: the voters at equal distances depend on this order. A digest is read as four
    # numbers of 64 bits, the first of which counts most. The others are needed where it is equal.
    words = digests.view(">u8")
    first = words[:, 0].astype(np.uint64)
    order = np.argsort(first)
    first = first[order]
    again = np.flatnonzero(first[1:] == first[:-1])
    tied = np.union1d(again, again + 1)
    alike = np.sort(order[tied])
    order[tied] = alike[np.lexsort(words[alike].astype(np.uint64).T[::-1])]
    return order.astype(np.int64, copy=False)


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
