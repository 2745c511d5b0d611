"""The tables of a ledger, as SQLAlchemy Core describes them. The migrations create them; a test
compares the two.

``head``        one row: the ledger's name, the position and digest of its last entry, all that was
                ever charged, what is charged to every budget for entries that a restored copy lost,
                and the policy. Writers lock it first.
``statements``  guarantee kind and adjacency, one row per combination.
``budgets``     a scope with what is granted and spent, and how much of that for lost entries. The
                database itself refuses to spend more than is granted.
``accounts``    a request's exact scope with what it has spent; one statement each.
``covers``      which budgets count which accounts. Its two composite keys make the database refuse
                a budget and an account with different statements, whoever writes.
``entries``     append-only and hash-chained. ``budgets`` and ``accounts`` are sums over it,
                maintained in the same transaction and recomputed by ``verify``.
"""

from __future__ import annotations

from typing import Any

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

# SQLite gives ids by itself only to a column that is exactly INTEGER.
_Id = BigInteger().with_variant(Integer(), "sqlite")


def _amount(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False, server_default="0")


metadata = MetaData()

head = Table(
    "head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("ledger", String(36), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
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
    Column("principal", String(200), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("bundle", String(200), nullable=False),
    Column(
        "statement_id",
        BigInteger,
        ForeignKey("statements.id", name="budgets_statement"),
        nullable=False,
    ),
    Column("granted_epsilon", BigInteger, nullable=False),
    Column("granted_delta", BigInteger, nullable=False),
    Column("spent_epsilon", BigInteger, nullable=False),
    Column("spent_delta", BigInteger, nullable=False),
    _amount("gap_epsilon"),
    _amount("gap_delta"),
    UniqueConstraint("principal", "subject", "bundle", name="budgets_once"),
    UniqueConstraint("id", "statement_id", name="budgets_key"),
    CheckConstraint("spent_epsilon BETWEEN 0 AND granted_epsilon", name="budgets_epsilon"),
    CheckConstraint("spent_delta BETWEEN 0 AND granted_delta", name="budgets_delta"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("principal", String(200), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("bundle", String(200), nullable=False),
    Column(
        "statement_id",
        BigInteger,
        ForeignKey("statements.id", name="accounts_statement"),
        nullable=False,
    ),
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

covers = Table(
    "covers",
    metadata,
    Column("account_id", BigInteger, primary_key=True),
    Column("budget_id", BigInteger, primary_key=True),
    Column("statement_id", BigInteger, nullable=False),
    ForeignKeyConstraint(
        ["account_id", "statement_id"],
        ["accounts.id", "accounts.statement_id"],
        name="covers_account",
    ),
    ForeignKeyConstraint(
        ["budget_id", "statement_id"], ["budgets.id", "budgets.statement_id"], name="covers_budget"
    ),
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
        "(action = 'policy' AND budget_id IS NULL AND account_id IS NULL AND reservation IS "
        "NULL) OR "
        "(action = 'accept' AND budget_id IS NULL AND account_id IS NULL AND reservation IS NULL)",
        name="entries_action",
    ),
    CheckConstraint(
        "statement_id IS NOT NULL OR action = 'policy' OR action = 'accept'",
        name="entries_have_a_statement",
    ),
)

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
"""One row for each prepaid plan; migration 0003 makes it."""

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
"""Keys of the service, as SHA-256 of what their holder knows; migration 0004 makes it. Times are
microseconds since 1970, lists are JSON.
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
what was answered; migrations 0004 and 0005 make it.
"""
