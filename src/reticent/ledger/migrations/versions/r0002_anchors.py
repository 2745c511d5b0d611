"""Second schema: totals, gaps and a policy in the head, and entries that are of no budget.

A ledger of the first schema required nothing of its scopes, and goes on requiring nothing until
its policy is set.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_LARGEST = 2**62
_ACTIONS = (
    "(action = 'grant' AND budget_id IS NOT NULL AND account_id IS NULL AND reservation IS "
    "NULL) OR "
    "(action = 'reserve' AND budget_id IS NULL AND account_id IS NOT NULL AND reservation IS "
    "NULL AND answers > 0) OR "
    "(action = 'commit' AND budget_id IS NULL AND account_id IS NOT NULL AND reservation IS "
    "NOT NULL) OR "
    "(action = 'gap' AND budget_id IS NOT NULL AND account_id IS NULL AND reservation IS NULL) OR "
    "(action = 'policy' AND budget_id IS NULL AND account_id IS NULL AND reservation IS NULL) OR "
    "(action = 'accept' AND budget_id IS NULL AND account_id IS NULL AND reservation IS NULL)"
)
_STATED = "statement_id IS NOT NULL OR action = 'policy' OR action = 'accept'"
_SQLITE_TRIGGERS = (
    (
        "CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, "
        "'entries are append-only'); END"
    ),
    (
        "CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, "
        "'entries are append-only'); END"
    ),
)


def upgrade() -> None:
    """Adds the columns, widens the entries, and fills in what was charged so far."""
    for table, name in (
        *(("head", name) for name in ("spent_epsilon", "spent_delta", "gap_epsilon", "gap_delta")),
        *(("budgets", name) for name in ("gap_epsilon", "gap_delta")),
    ):
        op.add_column(table, sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    for name in ("first_required", "required"):
        op.add_column("head", sa.Column(name, sa.String(40), nullable=False, server_default=""))
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        _rebuild_entries()
    else:
        op.alter_column("entries", "statement_id", nullable=True)
        op.drop_constraint("entries_action", "entries", type_="check")
        op.create_check_constraint("entries_action", "entries", _ACTIONS)
        op.create_check_constraint("entries_have_a_statement", "entries", _STATED)
    epsilon = delta = 0
    for row in connection.execute(
        sa.text("SELECT epsilon, delta FROM entries WHERE action = 'reserve'")
    ):
        epsilon, delta = min(epsilon + row.epsilon, _LARGEST), min(delta + row.delta, _LARGEST)
    connection.execute(
        sa.text("UPDATE head SET spent_epsilon = :e, spent_delta = :d"), {"e": epsilon, "d": delta}
    )


def _rebuild_entries() -> None:
    """SQLite changes no constraint of a table that is there: the entries move into a new one."""
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "entries_new",
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
            nullable=True,
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
        sa.CheckConstraint(_ACTIONS, name="entries_action"),
        sa.CheckConstraint(_STATED, name="entries_have_a_statement"),
    )
    op.execute("INSERT INTO entries_new SELECT * FROM entries ORDER BY seq")
    op.drop_table("entries")
    op.rename_table("entries_new", "entries")
    for trigger in _SQLITE_TRIGGERS:
        op.execute(trigger)
