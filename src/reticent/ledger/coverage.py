"""Coverage: which budgets cover which scopes, and which accounts; for one scope or for thousands
at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, product
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection, Row

from reticent.core.errors import IncompatibleGuarantees
from reticent.core.scopes import PARTS, Scope
from reticent.ledger.charges import describe_statement
from reticent.ledger.prepared import Prepared
from reticent.ledger.schema import accounts, budgets, covers, statements

Key = tuple[str, str, str]
"""Principal, subject and bundle."""

AT_ONCE = 900
"""Parameters in one query; SQLite before 3.32 takes 999."""

_IN_AN_ARRAY = 50_000
"""Values in one query where they are one parameter."""


@dataclass(frozen=True)
class Cover:
    """A request's exact scope, and what stands behind it.

    Attributes:
        scope: of the request.
        account_id: None where it has not spent before.
        budgets: every budget that covers it, by id.
    """

    scope: Scope
    account_id: int | None
    budgets: tuple[Row[Any], ...]


def key_of(scope: Scope) -> Key:
    """The scope's names, as a row holds them."""
    return (scope.principal, scope.subject, scope.bundle)


def covering(connection: Connection, scope: Scope) -> Cover:
    """What covers one scope; two short queries at most."""
    rows = _OF_ACCOUNT.rows(connection, scope.parts) or _BY_PATTERN.rows(connection, scope.parts)
    return Cover(scope, rows[0].account_id if rows else None, tuple(rows))


def covering_each(connection: Connection, scopes: Sequence[Scope]) -> list[Cover]:
    """What covers each of many different scopes, in few queries where they mostly differ in one
    name.
    """
    keys = [key_of(scope) for scope in scopes]
    found: dict[Key, Row[Any]] = {}
    account_ids: dict[Key, int] = {}
    for fixed, free, values in _batches(connection, keys, PARTS):
        where = [budgets.c[name].in_(["", value]) for name, value in fixed.items()]
        for row in connection.execute(
            _BUDGETS.where(*where, _among(connection, budgets.c[free], ["", *values]))
        ):
            found[row.principal, row.subject, row.bundle] = row
        for row in connection.execute(
            _ACCOUNT_IDS.where(*_within(connection, accounts, fixed, free, values))
        ):
            account_ids[row.principal, row.subject, row.bundle] = row.id
    covers_found = []
    for scope, key in zip(scopes, keys, strict=True):
        patterns = product(*(("", name) if name else ("",) for name in key))
        rows = sorted(
            (found[pattern] for pattern in patterns if pattern in found),
            key=lambda row: int(row.id),
        )
        covers_found.append(Cover(scope, account_ids.get(key), tuple(rows)))
    return covers_found


def check_statements(cover: Cover, statement: str) -> None:
    """Refuses a request whose kind or adjacency is not that of every budget which covers it.

    Raises:
        IncompatibleGuarantees: says which budget.
    """
    for row in cover.budgets:
        if row.statement != statement:
            other = Scope.stored(row.principal, row.subject, row.bundle)
            raise IncompatibleGuarantees(
                f"{cover.scope.describe()}: costs compose only within one kind and adjacency: "
                f"the budget of {other.describe()} "
                f"is for {describe_statement(row.statement)}, the request for "
                f"{describe_statement(statement)}"
            )


def budgets_at(connection: Connection, scopes: Sequence[Scope]) -> dict[Key, Row[Any]]:
    """The budgets of exactly these scopes, where there are any."""
    found: dict[Key, Row[Any]] = {}
    for fixed, free, values in _batches(connection, [key_of(scope) for scope in scopes], PARTS):
        for row in connection.execute(
            sa.select(budgets).where(*_within(connection, budgets, fixed, free, values))
        ):
            found[row.principal, row.subject, row.bundle] = row
    return found


def accounts_within(connection: Connection, scopes: Sequence[Scope]) -> dict[Key, list[Row[Any]]]:
    """The accounts that a budget of each scope covers."""
    by_names: defaultdict[tuple[str, ...], list[Key]] = defaultdict(list)
    found: dict[Key, list[Row[Any]]] = {}
    for key in map(key_of, scopes):
        by_names[tuple(compress(PARTS, key))].append(key)
        found[key] = []
    for names, keys in by_names.items():
        for fixed, free, values in _batches(
            connection, [tuple(filter(None, key)) for key in keys], names
        ):
            for row in connection.execute(
                sa.select(accounts).where(*_within(connection, accounts, fixed, free, values))
            ):
                principal, subject, bundle = (
                    getattr(row, name) if name in names else "" for name in PARTS
                )
                found[principal, subject, bundle].append(row)
    return found


_BUDGET_COLUMNS = (*budgets.c, statements.c.statement)
_BUDGETS = sa.select(*_BUDGET_COLUMNS).join(statements, statements.c.id == budgets.c.statement_id)
_ACCOUNT_IDS = sa.select(accounts.c.id, *(accounts.c[name] for name in PARTS))
_OF_ACCOUNT = Prepared(
    sa.select(*_BUDGET_COLUMNS, accounts.c.id.label("account_id"))
    .join(statements, statements.c.id == budgets.c.statement_id)
    .join(covers, covers.c.budget_id == budgets.c.id)
    .join(accounts, accounts.c.id == covers.c.account_id)
    .where(*(accounts.c[name] == sa.bindparam(name) for name in PARTS))
    .order_by(budgets.c.id)
)
_BY_PATTERN = Prepared(
    sa.select(*_BUDGET_COLUMNS, sa.null().label("account_id"))
    .join(statements, statements.c.id == budgets.c.statement_id)
    .where(
        *(sa.or_(budgets.c[name] == "", budgets.c[name] == sa.bindparam(name)) for name in PARTS)
    )
    .order_by(budgets.c.id)
)


def _within(
    connection: Connection, table: sa.Table, fixed: dict[str, str], free: str, values: list[str]
) -> list[sa.ColumnElement[bool]]:
    return [
        *(table.c[name] == value for name, value in fixed.items()),
        _among(connection, table.c[free], values),
    ]


def _among(
    connection: Connection, column: sa.ColumnElement[str], values: list[str]
) -> sa.ColumnElement[bool]:
    """Whether the column is one of many values.

    PostgreSQL compares a row with all of them by one hash, but only in a plan that was made for
    these values; a plan that is kept for any values compares with one after the other.
    """
    if _is_postgresql(connection):
        connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_custom_plan")
        return column == sa.any_(sa.literal(values, ARRAY(sa.Text)))
    return column.in_(values)


def _is_postgresql(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


def _batches(
    connection: Connection, keys: Sequence[tuple[str, ...]], names: Sequence[str]
) -> Iterator[tuple[dict[str, str], str, list[str]]]:
    """Different keys, those together that agree in all names but one: what they agree in, the name
    that is left, its values.

    The rows of one table mostly share client and bundle, so that thousands of keys are a few
    batches.
    """
    free = max(range(len(names)), key=lambda at: len({key[at] for key in keys}))
    groups: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for key in keys:
        groups[key[:free] + key[free + 1 :]].append(key[free])
    step = _IN_AN_ARRAY if _is_postgresql(connection) else AT_ONCE
    others = [*names[:free], *names[free + 1 :]]
    for agreed, values in groups.items():
        for start in range(0, len(values), step):
            yield dict(zip(others, agreed, strict=True)), names[free], values[start : start + step]
