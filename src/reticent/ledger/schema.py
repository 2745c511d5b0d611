"""The tables of a ledger, and the check that a database has them.

Tables:

``head``        one row: the ledger's name, the position and digest of its last entry, and what that
                digest covers besides: the root of the tree, all that was ever charged, what is
                charged to every budget for entries that a restored copy lost, and the policy.
                Writers lock it first.
``statements``  guarantee kind and adjacency, one row per combination.
``budgets``     a scope with what is granted and spent, and how much of that for lost entries. The
                database itself refuses to spend more than is granted.
``accounts``    a request's exact scope with what it has spent, each of one statement.
``entries``     append-only and hash-chained. ``budgets`` and ``accounts`` are sums over it,
                maintained in the same transaction and recomputed by ``verify``.
``nodes``       of the hash tree over the rows of ``budgets`` and ``accounts``, and of three more
                tables: the counts of prepaid plans, and the keys and answers of the service. See
                ``tree``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.engine import Connection
from sqlalchemy.engine.reflection import Inspector

# SQLite gives ids by itself only to a column that is exactly INTEGER.
_Id = BigInteger().with_variant(Integer(), "sqlite")


def _amount(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False, server_default="0")


def _scope(table: str) -> list[Column[Any]]:
    """Return the columns of a scope, and of the statement under which it is booked."""
    key = ForeignKey("statements.id", name=f"{table}_statement")
    return [
        *(Column(name, String(200), nullable=False) for name in ("principal", "subject", "bundle")),
        Column("statement_id", BigInteger, key, nullable=False),
    ]


metadata = MetaData()

head = Table(
    "head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("ledger", String(36), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("link", LargeBinary(32), nullable=False),
    Column("root", LargeBinary(32), nullable=False),
    _amount("spent_epsilon"),
    _amount("spent_delta"),
    _amount("gap_epsilon"),
    _amount("gap_delta"),
    Column("first_required", String(40), nullable=False, server_default=""),
    Column("required", String(40), nullable=False, server_default=""),
    CheckConstraint("id = 1", name="head_is_one_row"),
)

statements = Table(
    "statements",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("statement", Text, nullable=False),
    UniqueConstraint("statement", name="statements_once"),
)

budgets = Table(
    "budgets",
    metadata,
    Column("id", _Id, primary_key=True),
    *_scope("budgets"),
    Column("granted_epsilon", BigInteger, nullable=False),
    Column("granted_delta", BigInteger, nullable=False),
    Column("spent_epsilon", BigInteger, nullable=False),
    Column("spent_delta", BigInteger, nullable=False),
    _amount("gap_epsilon"),
    _amount("gap_delta"),
    UniqueConstraint("principal", "subject", "bundle", name="budgets_once"),
    CheckConstraint("spent_epsilon BETWEEN 0 AND granted_epsilon", name="budgets_epsilon"),
    CheckConstraint("spent_delta BETWEEN 0 AND granted_delta", name="budgets_delta"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("id", _Id, primary_key=True),
    *_scope("accounts"),
    Column("spent_epsilon", BigInteger, nullable=False),
    Column("spent_delta", BigInteger, nullable=False),
    Column("answers", BigInteger, nullable=False),
    Column("reservations", BigInteger, nullable=False),
    Column("commits", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    UniqueConstraint("principal", "subject", "bundle", name="accounts_once"),
    UniqueConstraint("id", "statement_id", name="accounts_key"),
    CheckConstraint(
        "spent_epsilon >= 0 AND spent_delta >= 0 AND answers >= 0", name="accounts_not_negative"
    ),
    CheckConstraint("commits BETWEEN 0 AND reservations", name="accounts_commits"),
)

entries = Table(
    "entries",
    metadata,
    Column("seq", _Id, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("action", String(7), nullable=False),
    Column("budget_id", BigInteger, ForeignKey("budgets.id", name="entries_budget"), nullable=True),
    Column("account_id", BigInteger, nullable=True),
    Column(
        "statement_id",
        BigInteger,
        ForeignKey("statements.id", name="entries_statement"),
        nullable=True,
    ),
    Column("epsilon", BigInteger, nullable=False),
    Column("delta", BigInteger, nullable=False),
    Column("answers", BigInteger, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column(
        "reservation",
        BigInteger,
        ForeignKey("entries.seq", name="entries_reservation"),
        nullable=True,
    ),
    Column("receipt", Text, nullable=False),
    Column("state", LargeBinary(32), nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    UniqueConstraint("reservation", name="entries_commit_once"),
    ForeignKeyConstraint(
        ["account_id", "statement_id"],
        ["accounts.id", "accounts.statement_id"],
        name="entries_account",
    ),
    CheckConstraint("epsilon >= 0 AND delta >= 0 AND answers >= 0", name="entries_not_negative"),
    CheckConstraint(
        "(action = 'grant' AND budget_id IS NOT NULL AND account_id IS NULL AND reservation IS "
        "NULL) OR "
        "(action = 'reserve' AND budget_id IS NULL AND account_id IS NOT NULL AND reservation "
        "IS NULL AND answers > 0) OR "
        "(action = 'commit' AND budget_id IS NULL AND account_id IS NOT NULL AND reservation "
        "IS NOT NULL) OR "
        "(action = 'gap' AND budget_id IS NOT NULL AND account_id IS NULL AND reservation IS "
        "NULL) OR "
        "((action = 'policy' OR action = 'accept' OR action = 'note') AND budget_id IS NULL AND "
        "account_id IS NULL AND reservation IS NULL)",
        name="entries_action",
    ),
    CheckConstraint(
        "statement_id IS NOT NULL OR action = 'policy' OR action = 'accept' OR action = 'note'",
        name="entries_have_a_statement",
    ),
)

nodes = Table(
    "nodes",
    metadata,
    Column("place", _Id, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)
"""Nodes of the tree: the root has place 1, and the children of place p have 16 p to 16 p + 15."""

SQLITE_TRIGGERS = {
    "entries_no_update": "CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END",
    "entries_no_delete": "CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END",
}
"""Triggers by name, as SQLite keeps their text. They stop accidents and SQL by hand, not the
owner of the file.
"""

POSTGRESQL_FUNCTION_BODY = " BEGIN RAISE EXCEPTION 'entries are append-only'; END "
POSTGRESQL_TRIGGERS = {
    "entries_append_only": "CREATE TRIGGER entries_append_only BEFORE DELETE OR UPDATE OR "
    "TRUNCATE ON entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION reticent_append_only()",
}
"""The same on PostgreSQL, and the body of the function that they call."""

LONGEST_PLAN_NAME = 64

plan_counts = Table(
    "plan_counts",
    metadata,
    Column("name", String(LONGEST_PLAN_NAME), primary_key=True),
    Column("booked", String(200), nullable=False),
    Column("queries", BigInteger, nullable=False),
    Column("answers", BigInteger, nullable=False),
    Column("asked", BigInteger, nullable=False),
    Column("answered", BigInteger, nullable=False),
    CheckConstraint("asked BETWEEN 0 AND queries", name="plan_counts_asked"),
    CheckConstraint("answered BETWEEN 0 AND answers", name="plan_counts_answered"),
)
"""One row for each prepaid plan; see ``counters``."""

LONGEST_IDEMPOTENCY_KEY = 128

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("digest", LargeBinary(32), nullable=False),
    Column("principal", String(200), nullable=False),
    Column("role", String(6), nullable=False),
    Column("bundles", Text, nullable=False),
    Column("subjects", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=True),
    Column("revoked", BigInteger, nullable=True),
    UniqueConstraint("digest", name="api_keys_once"),
    CheckConstraint("role = 'client' OR role = 'owner'", name="api_keys_role"),
)
"""Keys of the service, as SHA-256 of what their holder knows. Times are microseconds since 1970,
lists are JSON.
"""

service_answers = Table(
    "service_answers",
    metadata,
    Column("principal", String(200), primary_key=True),
    Column("idempotency_key", String(LONGEST_IDEMPOTENCY_KEY), primary_key=True),
    Column("request", LargeBinary(32), nullable=False),
    Column("state", String(8), nullable=False),
    Column("charged_at", BigInteger, nullable=False),
    Column("due", BigInteger, nullable=False),
    Column("booked", String(64), nullable=False),
    Column("receipt", String(16), nullable=True),
    Column("body", LargeBinary, nullable=True),
    UniqueConstraint("receipt", name="service_answers_receipt"),
    CheckConstraint(
        "(state = 'answered' AND receipt IS NOT NULL AND body IS NOT NULL) OR "
        "(state = 'removed' AND receipt IS NOT NULL AND body IS NULL) OR "
        "((state = 'charged' OR state = 'lost') AND receipt IS NULL AND body IS NULL)",
        name="service_answers_state",
    ),
)
"""One row for each request that the service has charged: the keyed digest of what was asked, and
what was answered.
"""


VERSION = "tree"
"""Version of these tables: the name of the last migration."""


def version(connection: Connection) -> str | None:
    """Return the version of a database's tables, or None if it holds no ledger."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return found


def make_tables(connection: Connection) -> None:
    """Make all tables and triggers in a database that has none of them."""
    metadata.create_all(connection, checkfirst=False)
    triggers = SQLITE_TRIGGERS
    if connection.dialect.name == "postgresql":
        triggers = POSTGRESQL_TRIGGERS
        connection.exec_driver_sql(
            "CREATE FUNCTION reticent_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$${POSTGRESQL_FUNCTION_BODY}$$"
        )
    for trigger in triggers.values():
        connection.exec_driver_sql(trigger)


def schema_problems(connection: Connection) -> Iterator[str]:
    """Return every difference from the tables above, in plain words.

    Each is missing, other, or there in addition. A trigger or a constraint that is gone shows that
    somebody took the guards off. One that was added may change entries while they are written.

    Args:
        connection: connection of a transaction that reads.
    """
    inspector = sa.inspect(connection)
    names = set(inspector.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in names:
            yield f"table {table.name} is missing"
        else:
            yield from _table_problems(inspector, table)
    yield from (_sqlite_problems if connection.dialect.name == "sqlite" else _postgresql_problems)(
        connection
    )


def _table_problems(inspector: Inspector, table: sa.Table) -> Iterator[str]:
    found: dict[str, Any] = {column["name"]: column for column in inspector.get_columns(table.name)}
    for column in table.columns:
        stored = found.pop(column.name, None)
        if stored is None:
            yield f"column {table.name}.{column.name} is missing"
        elif (
            stored["nullable"] != column.nullable
            or stored["type"]._type_affinity is not column.type._type_affinity
        ):
            yield f"column {table.name}.{column.name} takes other values than a ledger's"
    for name in found:
        yield f"column {table.name}.{name} is not part of a ledger"
    primary = inspector.get_pk_constraint(table.name)["constrained_columns"]
    if primary != [column.name for column in table.primary_key]:
        yield f"table {table.name} has another primary key"
    for label, expected, stored_names in (
        ("unique constraint", _expected_unique(table), _found_unique(inspector, table)),
        ("foreign key", _expected_foreign(table), _found_foreign(inspector, table)),
        ("check", _expected_checks(table), _found_checks(inspector, table)),
    ):
        for name, content in expected.items():
            if name not in stored_names:
                yield f"{label} {name} of table {table.name} is missing"
            elif stored_names[name] != content:
                yield f"{label} {name} of table {table.name} says something else"
        for name in stored_names.keys() - expected.keys():
            yield f"{label} {name} of table {table.name} is not part of a ledger"


def _expected_unique(table: sa.Table) -> dict[str, Any]:
    found = (
        constraint
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint)
    )
    return {
        str(constraint.name): [column.name for column in constraint.columns] for constraint in found
    }


def _found_unique(inspector: Inspector, table: sa.Table) -> dict[str, Any]:
    return {
        str(found["name"]): found["column_names"]
        for found in inspector.get_unique_constraints(table.name)
    }


def _expected_foreign(table: sa.Table) -> dict[str, Any]:
    return {
        str(constraint.name): (
            constraint.column_keys,
            constraint.referred_table.name,
            [element.column.name for element in constraint.elements],
        )
        for constraint in table.foreign_key_constraints
    }


def _found_foreign(inspector: Inspector, table: sa.Table) -> dict[str, Any]:
    return {
        str(found["name"]): (
            found["constrained_columns"],
            found["referred_table"],
            found["referred_columns"],
        )
        for found in inspector.get_foreign_keys(table.name)
    }


def _expected_checks(table: sa.Table) -> dict[str, Any]:
    found = (
        constraint for constraint in table.constraints if isinstance(constraint, sa.CheckConstraint)
    )
    return {str(constraint.name): _plain(str(constraint.sqltext)) for constraint in found}


def _found_checks(inspector: Inspector, table: sa.Table) -> dict[str, Any]:
    return {
        str(found["name"]): _plain(found["sqltext"])
        for found in inspector.get_check_constraints(table.name)
    }


def _plain(condition: str) -> str:
    """Return a condition without what a server adds when it prints one.

    A server adds casts, parentheses and spaces, and spells BETWEEN out.
    """
    text = re.sub(r"(\w+) between (\w+) and (\w+)", r"\1 >= \2 and \1 <= \3", condition.lower())
    text = re.sub(r"::(character varying|bigint|integer|text)", "", text)
    return re.sub(r"[\s()\"]+", "", text)


def _one_line(sql: Any) -> str:
    return " ".join(str(sql).split())


def _sqlite_problems(connection: Connection) -> Iterator[str]:
    tables = set(metadata.tables)
    rows = connection.exec_driver_sql(
        "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).all()
    found = {str(row.name): _one_line(row.sql) for row in rows if row.tbl_name in tables}
    yield from _trigger_problems(found, SQLITE_TRIGGERS)


def _postgresql_problems(connection: Connection) -> Iterator[str]:
    ours = {"tables": list(metadata.tables)}
    triggers = sa.text(
        "SELECT t.tgname AS name, pg_get_triggerdef(t.oid) AS sql, t.tgenabled AS enabled, "
        "t.tgisinternal AS internal, "
        "p.prosrc AS body FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc "
        "p ON p.oid = t.tgfoid "
        "WHERE c.relname = ANY(:tables) AND c.relnamespace = current_schema()::regnamespace"
    )
    found = {}
    for row in connection.execute(triggers, ours):
        enabled = row.enabled.decode() if isinstance(row.enabled, bytes) else str(row.enabled)
        if enabled not in ("O", "A"):
            yield f"trigger {row.name} is switched off"
        if not row.internal:
            found[row.name] = _one_line(row.sql).replace(" ON public.", " ON ")
            if row.body != POSTGRESQL_FUNCTION_BODY:
                yield f"trigger {row.name} does something else"
    yield from _trigger_problems(found, POSTGRESQL_TRIGGERS)
    unproved = sa.text(
        "SELECT conname FROM pg_constraint JOIN pg_class c ON c.oid = conrelid "
        "WHERE c.relname = ANY(:tables) AND c.relnamespace = current_schema()::regnamespace "
        "AND NOT convalidated"
    )
    for row in connection.execute(unproved, ours):
        yield f"constraint {row.conname} does not hold for rows that were there before it"
    others = sa.text(
        "SELECT rulename AS name, tablename AS place FROM pg_rules "
        "WHERE tablename = ANY(:tables) AND schemaname = current_schema() UNION ALL "
        "SELECT policyname, tablename FROM pg_policies WHERE tablename = ANY(:tables) AND "
        "schemaname = current_schema()"
    )
    for row in connection.execute(others, ours):
        yield f"rule {row.name} of table {row.place} is not part of a ledger"


def _trigger_problems(found: dict[str, str], expected: dict[str, str]) -> Iterator[str]:
    for name, sql in expected.items():
        if name not in found:
            yield f"trigger {name} is missing"
        elif found[name] != _one_line(sql):
            yield f"trigger {name} does something else"
    for name in found.keys() - expected.keys():
        yield f"trigger {name} is not part of a ledger"
