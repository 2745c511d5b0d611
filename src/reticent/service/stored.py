"""Rows of ``service_answers``: requests and their answers, as the ledger's chain knows them."""

from __future__ import annotations

from typing import Any

from reticent.ledger.chain import Page
from reticent.ledger.schema import service_answers
from reticent.ledger.statements import Session, Statement, inserting, named
from reticent.ledger.tree import ANSWERS, changed

Values = dict[str, Any]
"""All columns of a row, by name."""


def find(page: Page, principal: str, idempotency_key: str) -> Values | None:
    """Return the row of a request, or None where it was never charged.

    Raises:
        CorruptLedger: it was added, changed or removed by other means than this library.
    """
    name = ANSWERS.key(principal, idempotency_key)
    known = page.tree.find([name]).get(name)
    if known is not None and (mine := _charged.get(known)) is not None:
        return mine
    rows = _ROW.rows(page.connection, principal, idempotency_key)
    found: Values | None = rows[0] if rows else None
    if known != (None if found is None else ANSWERS.digest(found)):
        raise changed(ANSWERS)
    return found


def of_receipt(page: Page, principal: str, receipt: str) -> Values | None:
    """Return the row of the answer with this receipt, or None.

    Raises:
        CorruptLedger: the error of ``find``.
    """
    rows = _RECEIPT.rows(page.connection, principal, receipt)
    return find(page, principal, rows[0][0]) if rows else None


def add(page: Page, row: Values) -> None:
    """Write a new row. An entry has to follow."""
    _ADD.run(page.connection, tuple(row[name] for name in _COLUMNS))
    digest = ANSWERS.digest(row)
    page.tree.put({ANSWERS.key_of(row): digest})
    if len(_charged) >= _MOST_CHARGED:
        _charged.clear()
    _charged[digest] = row


def change(page: Page, row: Values, **others: Any) -> Values:
    """Write a row with other values, and return it. An entry has to follow.

    Raises:
        CorruptLedger: the database has another row in its place. It is raised no later than the
            transaction ends.
    """
    after = row | others
    values = *(after[name] for name in _CHANGING), *(row[name] for name in _STAYING)
    _CHANGE.run(page.connection, values, otherwise=lambda: changed(ANSWERS))
    page.tree.put({ANSWERS.key_of(after): ANSWERS.digest(after)})
    return after


_MOST_CHARGED = 1 << 10
_charged: dict[bytes, Values] = {}
"""Rows that this process added, by their digests: right whatever a database says."""


def charged_before(
    connection: Session, at: int, *, behind: tuple[str, str]
) -> list[tuple[str, str]]:
    """Return the names of some answers that are stored and were charged before ``at``.

    Args:
        connection: connection of a transaction.
        at: microseconds since 1970.
        behind: name that all returned names come behind.
    """
    return _OLD.rows(connection, at, *behind, _AT_ONCE)


_AT_ONCE = 500
"""Answers in one transaction; charges of others wait meanwhile."""

_COLUMNS = tuple(column.name for column in service_answers.c)
_CHANGING = ("state", "receipt", "body")
_HERE = "WHERE principal = ? AND idempotency_key = ?"
_ROW = Statement(
    f"SELECT {named(_COLUMNS)} FROM service_answers {_HERE}",
    lambda row: dict(zip(_COLUMNS, row, strict=True)),
)
_RECEIPT: Statement[Any] = Statement(
    "SELECT idempotency_key FROM service_answers WHERE principal = ? AND receipt = ?"
)
_ADD = inserting(service_answers)
_STAYING = tuple(name for name in _COLUMNS if name not in _CHANGING)
_CHANGE: Statement[Any] = Statement(
    f"UPDATE service_answers SET {', '.join(f'{name} = ?' for name in _CHANGING)} WHERE "
    + " AND ".join(f"{name} = ?" for name in _STAYING)
)
_OLD: Statement[Any] = Statement(
    "SELECT principal, idempotency_key FROM service_answers WHERE state = 'answered' AND "
    "charged_at < ? AND (principal, idempotency_key) > (?, ?) "
    "ORDER BY principal, idempotency_key LIMIT ?"
)
