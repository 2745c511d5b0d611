"""The end of the chain, as the database holds it: every transaction that appends begins by reading
it, under a lock, and ends by writing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from reticent.core.errors import CorruptLedger
from reticent.core.scopes import PARTS, Policy
from reticent.ledger.anchors import Anchor
from reticent.ledger.chain import genesis
from reticent.ledger.prepared import Prepared
from reticent.ledger.schema import entries, head


@dataclass(frozen=True)
class Tip:
    """The end of the chain, and what the ledger as a whole holds.

    Attributes:
        ledger: its name.
        seq: position of the last entry.
        digest: its digest, 32 bytes.
        spent: micro-epsilon and pico-delta of all charges, whatever their scope.
        gap: what every budget is charged for entries that a restored copy lost.
        policy: what requests must name.
        first: the policy that the ledger was made with, as text.
    """

    ledger: str
    seq: int
    digest: bytes
    spent: tuple[int, int]
    gap: tuple[int, int]
    policy: Policy
    first: str

    @classmethod
    def of_row(cls, row: Row[Any]) -> Self:
        """What the table ``head`` holds.

        Raises:
            CorruptLedger: it holds something else than a ledger writes there.
        """
        numbers = (row.seq, row.spent_epsilon, row.spent_delta, row.gap_epsilon, row.gap_delta)
        texts = (row.ledger, row.first_required, row.required)
        digest = row.digest
        if (
            not all(type(number) is int and number >= 0 for number in numbers)
            or not all(isinstance(text, str) for text in texts)
            or not isinstance(digest, bytes | memoryview)
            or not set(row.required.split(",")) <= {"", *PARTS}
            or not row.ledger.isprintable()
        ):
            raise CorruptLedger(
                "the ledger's head was changed by other means than this library; see `reticent "
                "ledger verify`"
            )
        policy = Policy.stored(row.required)
        return cls(
            row.ledger,
            row.seq,
            bytes(digest),
            numbers[1:3],
            numbers[3:5],
            policy,
            row.first_required,
        )

    @property
    def genesis(self) -> bytes:
        """The digest before the first entry, 32 bytes."""
        return genesis(self.ledger, self.first)

    @property
    def anchor(self) -> Anchor:
        """What is kept of it outside the database."""
        return Anchor(self.ledger, self.seq, self.digest.hex(), *self.spent)


def read_tip(connection: Connection, *, lock: bool) -> Tip | None:
    """The end of the chain, None where there is no ledger.

    Args:
        connection: of a transaction.
        lock: whether to take, on PostgreSQL, the lock that makes writers take turns.

    Raises:
        CorruptLedger: it holds something else than a ledger writes there.
    """
    row = (_LOCKED_HEAD if lock else _HEAD).first(connection, {})
    return None if row is None else Tip.of_row(row)


def digest_at(connection: Connection, seq: int) -> str:
    """The digest of an entry in hexadecimal, or "" where there is none."""
    row = _DIGEST_AT.first(connection, {"at": seq})
    found = None if row is None else row.digest
    return bytes(found).hex() if isinstance(found, bytes | memoryview) else ""


def raw(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """A column as the database gives it: SQLite lets anything stand anywhere, and a number would
    be taken for a length.
    """
    return sa.type_coerce(column, sa.types.NullType()).label(column.name)


def write_tip(connection: Connection, tip: Tip) -> None:
    """Writes the end of the chain, once for all that a transaction has posted."""
    values = {
        "seq": tip.seq,
        "digest": tip.digest,
        "required": tip.policy.text,
        "spent_epsilon": tip.spent[0],
        "spent_delta": tip.spent[1],
        "gap_epsilon": tip.gap[0],
        "gap_delta": tip.gap[1],
    }
    _MOVE_HEAD.run(connection, {f"new_{name}": value for name, value in values.items()})


_SELECT_HEAD: sa.Select[Any] = sa.select(
    *(column.label(column.name) for column in head.c if column.name != "digest"), raw(head.c.digest)
).where(head.c.id == 1)
_HEAD = Prepared(_SELECT_HEAD)
_LOCKED_HEAD = Prepared(_SELECT_HEAD.with_for_update())
_DIGEST_AT = Prepared(sa.select(raw(entries.c.digest)).where(entries.c.seq == sa.bindparam("at")))
_MOVE_HEAD = Prepared(
    head.update()
    .where(head.c.id == 1)
    .values(
        {
            name: sa.bindparam(f"new_{name}")
            for name in (column.name for column in head.c)
            if name not in ("id", "ledger", "first_required")
        }
    )
)
