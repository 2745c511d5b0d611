"""Rows of ``service_answers``: requests and their answers, as the ledger's chain knows them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from reticent.ledger.chain import Page
from reticent.ledger.schema import Prepared, service_answers
from reticent.ledger.tree import ANSWERS

Values = dict[str, Any]
"""All columns of a row, by name."""


def find(page: Page, principal: str, idempotency_key: str) -> Values | None:
    """Return the row of a request, or None where it was never charged.

    Raises:
        CorruptLedger: it was added, changed or removed by other means than this library.
    """
    rows = _ROW.rows(page.connection, {"who": principal, "which": idempotency_key})
    found: Values | None = rows[0]._asdict() if rows else None
    page.tree.check(ANSWERS, ANSWERS.key(principal, idempotency_key), found)
    return found


def named(page: Page, principal: str, receipt: str) -> Values | None:
    """Return the row of the answer with this receipt, or None.

    Raises:
        CorruptLedger: the error of ``find``.
    """
    rows = _RECEIPT.rows(page.connection, {"who": principal, "name": receipt})
    return find(page, principal, rows[0].idempotency_key) if rows else None


def add(page: Page, row: Values) -> None:
    """Write a new row. An entry has to follow."""
    _ADD.run(page.connection, row)
    page.tree.put({ANSWERS.key_of(row): ANSWERS.digest(row)})


def change(page: Page, row: Values, **others: Any) -> Values:
    """Write a row with other values, and return it. An entry has to follow."""
    row = row | others
    _CHANGE.run(
        page.connection,
        {
            "who": row["principal"],
            "which": row["idempotency_key"],
            **{f"new_{name}": row[name] for name in _CHANGING},
        },
    )
    page.tree.put({ANSWERS.key_of(row): ANSWERS.digest(row)})
    return row


def charged_before(
    connection: Connection, at: int, *, behind: tuple[str, str]
) -> list[tuple[str, str]]:
    """Return the names of some answers that are stored and were charged before ``at``.

    Args:
        connection: connection of a transaction.
        at: microseconds since 1970.
        behind: name that all returned names come behind.
    """
    named = {"who": behind[0], "which": behind[1], "before": at, "most": _AT_ONCE}
    rows = _OLD.rows(connection, named)
    return [(row.principal, row.idempotency_key) for row in rows]


_AT_ONCE = 500
"""Answers in one transaction; charges of others wait meanwhile."""

_NAMES = (service_answers.c.principal, service_answers.c.idempotency_key)
_WHO, _WHICH = (sa.bindparam(name, type_=sa.String()) for name in ("who", "which"))
_HERE = (_NAMES[0] == _WHO, _NAMES[1] == _WHICH)
_CHANGING = ("state", "receipt", "body")
_ROW = Prepared(sa.select(service_answers).where(*_HERE))
_RECEIPT = Prepared(
    sa.select(service_answers.c.idempotency_key).where(
        _NAMES[0] == _WHO, service_answers.c.receipt == sa.bindparam("name")
    )
)
_ADD = Prepared(service_answers.insert(), columns=service_answers.c.keys())
_CHANGE = Prepared(
    service_answers.update()
    .where(*_HERE)
    .values({name: sa.bindparam(f"new_{name}") for name in _CHANGING})
)
_OLD = Prepared(
    sa.select(*_NAMES)
    .where(
        service_answers.c.state == "answered",
        service_answers.c.charged_at < sa.bindparam("before", type_=sa.BigInteger()),
        sa.tuple_(*_NAMES) > sa.tuple_(_WHO, _WHICH),
    )
    .order_by(*_NAMES)
    .limit(sa.bindparam("most", type_=sa.Integer()))
)
