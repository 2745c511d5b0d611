"""The hash chain: every entry of the ledger commits to everything before it.

The end of the chain stands in the database: every transaction that appends begins by reading it,
under a lock, and ends by writing it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from reticent.core.errors import CorruptLedger
from reticent.core.scopes import PARTS, Policy
from reticent.ledger.anchors import Anchor
from reticent.ledger.prepared import Prepared
from reticent.ledger.schema import entries, head

# A positional JSON list of scalars is the canonical form: no key order, no floats. One encoder:
# making one is the slow part.
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

Action = Literal["grant", "reserve", "commit", "policy", "gap", "accept"]
"""What an entry does.

``grant`` adds to a budget; ``reserve`` spends; ``commit`` ties a reservation to a receipt.
``policy`` says what requests must name. ``accept`` says that an operator goes on with an older
copy: it takes a position after the lost entries, so that no two entries ever have one position,
and names the lost end of the chain. ``gap`` charges a budget for what the lost entries may have
spent.
"""


class Entry(NamedTuple):
    """One row of the ledger, with every number and name that it stands for spelled out.

    Attributes:
        seq: position, 1, 2, 3, ...; only "accept" leaves some out.
        at: microseconds since 1970, UTC.
        action: see ``Action``.
        principal: see ``Scope``; the budget's for a grant or gap, the request's for a reserve or
            commit, "" otherwise.
        subject: see ``Scope``.
        bundle: see ``Scope``.
        statement: kind and adjacency of the cost, as canonical JSON; "" for a policy or accept.
        epsilon: micro-epsilon granted or spent; of an accept, what every later budget starts with;
            0 for a commit or policy.
        delta: the same in pico-delta.
        answers: number of answers paid for; 0 for all but a reserve.
        mechanism: of a reserve, what caused the cost; of a policy, the required parts; ""
            otherwise.
        reservation: of a commit, the ``seq`` of what it commits; 0 otherwise.
        receipt: of a commit, the receipt; of an accept, the anchor of the lost end, as
            "position:digest"; "" otherwise.
    """

    seq: int
    at: int
    action: Action
    principal: str
    subject: str
    bundle: str
    statement: str
    epsilon: int
    delta: int
    answers: int
    mechanism: str
    reservation: int
    receipt: str

    def digest(self, previous: bytes) -> bytes:
        """SHA-256 of the entry and of the digest before it, 32 bytes."""
        return hashlib.sha256(previous + _encode(self).encode()).digest()


def genesis(ledger: str, required: str) -> bytes:
    """The digest before the first entry of a ledger, 32 bytes.

    Args:
        ledger: its name.
        required: what its first policy required, as ``Policy.text``.
    """
    requires = f" requires {required}" if required else ""
    return hashlib.sha256(f"reticent ledger {ledger}{requires}".encode()).digest()


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
