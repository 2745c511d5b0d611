"""How long answers are kept: their bodies may go, and the keys of their requests stay.

A request whose answer is gone is refused when it is repeated, and never drawn again; what it was
charged stays charged, and its entries stay in the chain.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from reticent.core.errors import InvalidInput
from reticent.ledger.schema import Prepared, service_answers
from reticent.ledger.store import Store

LEAST = 3600.0
"""Seconds for which an answer is kept at least: a client whose connection broke repeats its request
within minutes."""

_AT_ONCE = 500
"""Answers in one transaction; charges of others wait meanwhile."""

_MICROSECONDS = 1_000_000
_UNITS = {"h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_AGE = re.compile(r"([0-9]{1,6})([hdw])")


@dataclass(frozen=True)
class Removal:
    """What ``prune`` removed, or would remove.

    Attributes:
        answers: how many.
        size: bytes of their bodies.
    """

    answers: int
    size: int


def age_of(text: str) -> float:
    """Seconds in an age such as "12h", "30d" or "8w".

    Raises:
        InvalidInput: something else.

    Example:
        >>> age_of("30d")
        2592000.0
    """
    found = _AGE.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"older-than={text!r:.40}: expected a whole number and h, d or w, for instance 30d"
        )
    return int(found[1]) * _UNITS[found[2]]


def prune(
    store: Store,
    *,
    older_than: float,
    dry_run: bool = False,
    clock: Callable[[], float] = time.time,
) -> Removal:
    """Removes the bodies of answers that were charged long ago, while services go on.

    **Guarantee.** No charge, no entry and no key of a request is removed: the same request is
    refused from then on, and the same key for another request as before.

    Args:
        store: of the ledger.
        older_than: seconds since the charge, at least an hour.
        dry_run: count, and remove nothing.
        clock: seconds since 1970.

    Raises:
        InvalidInput: ``older_than`` is less than an hour.
        LedgerUnavailable: could not be written, or others read what was removed; what was removed
            before stays removed, and repeating it removes the rest.
    """
    if not older_than >= LEAST:
        raise InvalidInput(
            f"older_than={older_than:g}: expected at least {LEAST:g} seconds, within which clients "
            "repeat requests whose answers they have not got"
        )
    before = int((clock() - older_than) * _MICROSECONDS)
    removed, size = 0, 0
    last = {"who": "", "which": ""}
    while last:
        with store.read() as connection:
            rows = _OLD.rows(connection, {**last, "before": before})
        if not rows:
            break
        names = [{"who": row.principal, "which": row.idempotency_key} for row in rows]
        if not dry_run:
            with store.write() as connection:
                if store.is_sqlite:
                    # What is removed is written over, where SQLite would leave it in free pages.
                    connection.exec_driver_sql("PRAGMA secure_delete = ON")
                _REMOVE.run(connection, *names)
        removed += len(rows)
        size += sum(row.size for row in rows)
        last = names[-1]
    if not dry_run:
        store.checkpoint()
    return Removal(removed, size)


def is_removed(connection: Connection, principal: str, receipt: str) -> bool:
    """Whether the answer of this receipt was removed."""
    rows = _RECEIPT.rows(connection, {"who": principal, "name": receipt})
    return any(row.state == "removed" for row in rows)


_NAMES = (service_answers.c.principal, service_answers.c.idempotency_key)
_OLD = Prepared(
    sa.select(*_NAMES, sa.func.length(service_answers.c.body).label("size"))
    .where(
        service_answers.c.state == "answered",
        service_answers.c.charged_at < sa.bindparam("before", type_=sa.BigInteger()),
        sa.tuple_(*_NAMES)
        > sa.tuple_(
            sa.bindparam("who", type_=sa.String()), sa.bindparam("which", type_=sa.String())
        ),
    )
    .order_by(*_NAMES)
    .limit(sa.literal_column(str(_AT_ONCE)))
)
_REMOVE = Prepared(
    service_answers.update()
    .where(
        service_answers.c.principal == sa.bindparam("who"),
        service_answers.c.idempotency_key == sa.bindparam("which"),
        service_answers.c.state == "answered",
    )
    .values(state="removed", body=sa.null())
)
_RECEIPT = Prepared(
    sa.select(service_answers.c.state).where(
        service_answers.c.principal == sa.bindparam("who"),
        service_answers.c.receipt == sa.bindparam("name"),
    )
)
