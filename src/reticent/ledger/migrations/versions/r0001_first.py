"""First schema: head, statements, budgets, accounts, covers, entries, and the triggers that keep
entries append-only.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_APPEND_ONLY_SQLITE = (
    (
        "CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, "
        "'entries are append-only'); END"
    ),
    (
        "CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, "
        "'entries are append-only'); END"
    ),
)
_APPEND_ONLY_POSTGRESQL = (
    """CREATE FUNCTION reticent_append_only() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'entries are append-only'; END $$""",
    """CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION reticent_append_only()""",
)


def upgrade() -> None:
    """Creates everything."""
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    names = ("principal", "subject", "bundle")
    op.create_table(
        "head",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("ledger", sa.String(36), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.CheckConstraint("id = 1", name="head_is_one_row"),
    )
    op.create_table(
        "statements",
        sa.Column("id", key, primary_key=True),
        sa.Column("statement", sa.Text(), nullable=False),
        sa.UniqueConstraint("statement", name="statements_once"),
    )
    op.create_table(
        "budgets",
        sa.Column("id", key, primary_key=True),
        *(sa.Column(name, sa.String(200), nullable=False) for name in names),
        sa.Column(
            "statement_id",
            sa.BigInteger(),
            sa.ForeignKey("statements.id", name="budgets_statement"),
            nullable=False,
        ),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("granted_epsilon", "granted_delta", "spent_epsilon", "spent_delta")
        ),
        sa.UniqueConstraint(*names, name="budgets_once"),
        sa.UniqueConstraint("id", "statement_id", name="budgets_key"),
        sa.CheckConstraint("spent_epsilon BETWEEN 0 AND granted_epsilon", name="budgets_epsilon"),
        sa.CheckConstraint("spent_delta BETWEEN 0 AND granted_delta", name="budgets_delta"),
    )
    op.create_table(
        "accounts",
        sa.Column("id", key, primary_key=True),
        *(sa.Column(name, sa.String(200), nullable=False) for name in names),
        sa.Column(
            "statement_id",
            sa.BigInteger(),
            sa.ForeignKey("statements.id", name="accounts_statement"),
            nullable=False,
        ),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in (
                "spent_epsilon",
                "spent_delta",
                "answers",
                "reservations",
                "commits",
                "last_at",
            )
        ),
        sa.UniqueConstraint(*names, name="accounts_once"),
        sa.UniqueConstraint("id", "statement_id", name="accounts_key"),
        sa.CheckConstraint(
            "spent_epsilon >= 0 AND spent_delta >= 0 AND answers >= 0", name="accounts_not_negative"
        ),
        sa.CheckConstraint("commits BETWEEN 0 AND reservations", name="accounts_commits"),
    )
    op.create_table(
        "covers",
        sa.Column("account_id", sa.BigInteger(), primary_key=True),
        sa.Column("budget_id", sa.BigInteger(), primary_key=True),
        sa.Column("statement_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "statement_id"],
            ["accounts.id", "accounts.statement_id"],
            name="covers_account",
        ),
        sa.ForeignKeyConstraint(
            ["budget_id", "statement_id"],
            ["budgets.id", "budgets.statement_id"],
            name="covers_budget",
        ),
    )
    op.create_table(
        "entries",
        sa.Column("seq", key, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.String(7), nullable=False),
        sa.Column(
            "budget_id",
            sa.BigInteger(),
            sa.ForeignKey("budgets.id", name="entries_budget"),
            nullable=True,
        ),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column(
            "statement_id",
            sa.BigInteger(),
            sa.ForeignKey("statements.id", name="entries_statement"),
            nullable=False,
        ),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("epsilon", "delta", "answers")
        ),
        sa.Column("mechanism", sa.Text(), nullable=False),
        sa.Column(
            "reservation",
            sa.BigInteger(),
            sa.ForeignKey("entries.seq", name="entries_reservation"),
            nullable=True,
        ),
        sa.Column("receipt", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.UniqueConstraint("reservation", name="entries_commit_once"),
        sa.ForeignKeyConstraint(
            ["account_id", "statement_id"],
            ["accounts.id", "accounts.statement_id"],
            name="entries_account",
        ),
        sa.CheckConstraint(
            "epsilon >= 0 AND delta >= 0 AND answers >= 0", name="entries_not_negative"
        ),
        sa.CheckConstraint(
            "(action = 'grant' AND budget_id IS NOT NULL AND account_id IS NULL AND "
            "reservation IS NULL) OR "
            "(action = 'reserve' AND budget_id IS NULL AND account_id IS NOT NULL AND "
            "reservation IS NULL AND answers > 0) OR "
            "(action = 'commit' AND budget_id IS NULL AND account_id IS NOT NULL AND "
            "reservation IS NOT NULL)",
            name="entries_action",
        ),
    )
    for statement in (
        _APPEND_ONLY_SQLITE if op.get_bind().dialect.name == "sqlite" else _APPEND_ONLY_POSTGRESQL
    ):
        op.execute(statement)
