"""Whether a database's tables, constraints and triggers are those that a ledger's guarantee
rests on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.engine.reflection import Inspector

from reticent.ledger import schema


def schema_problems(connection: Connection) -> Iterator[str]:
    """Every difference from what the migrations make, in plain words: what is missing, other, or
    there in addition.

    A trigger or a constraint that is gone shows that somebody took the guards off; one that was
    added may change entries while they are written.

    Args:
        connection: of a transaction that reads.
    """
    inspector = sa.inspect(connection)
    names = set(inspector.get_table_names())
    for table in schema.metadata.sorted_tables:
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
    """A condition without what a server adds when it prints one: casts, parentheses, spaces,
    BETWEEN spelled out.
    """
    text = re.sub(r"(\w+) between (\w+) and (\w+)", r"\1 >= \2 and \1 <= \3", condition.lower())
    text = re.sub(r"::(character varying|bigint|integer|text)", "", text)
    return re.sub(r"[\s()\"]+", "", text)


def _one_line(sql: Any) -> str:
    return " ".join(str(sql).split())


def _sqlite_problems(connection: Connection) -> Iterator[str]:
    tables = set(schema.metadata.tables)
    rows = connection.exec_driver_sql(
        "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).all()
    found = {str(row.name): _one_line(row.sql) for row in rows if row.tbl_name in tables}
    yield from _trigger_problems(found, schema.SQLITE_TRIGGERS)


def _postgresql_problems(connection: Connection) -> Iterator[str]:
    ours = {"tables": list(schema.metadata.tables)}
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
            if row.body != schema.POSTGRESQL_FUNCTION_BODY:
                yield f"trigger {row.name} does something else"
    yield from _trigger_problems(found, schema.POSTGRESQL_TRIGGERS)
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
