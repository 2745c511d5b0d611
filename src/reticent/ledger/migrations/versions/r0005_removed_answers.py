"""Answers of the service that were removed: their keys stay, so that nothing is drawn again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_STATES = (
    "(state = 'answered' AND receipt IS NOT NULL AND body IS NOT NULL) OR "
    "(state = 'removed' AND receipt IS NOT NULL AND body IS NULL) OR "
    "((state = 'charged' OR state = 'lost') AND receipt IS NULL AND body IS NULL)"
)


def upgrade() -> None:
    """Lets an answered request be without its answer."""
    if op.get_bind().dialect.name == "sqlite":
        _rebuild()
        return
    op.drop_constraint("service_answers_state", "service_answers", type_="check")
    op.create_check_constraint("service_answers_state", "service_answers", _STATES)


def _rebuild() -> None:
    """SQLite changes no constraint of a table that is there: the rows move into a new one."""
    op.create_table(
        "service_answers_new",
        sa.Column("principal", sa.String(200), primary_key=True),
        sa.Column("idempotency_key", sa.String(128), primary_key=True),
        sa.Column("request", sa.LargeBinary(32), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("charged_at", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("booked", sa.String(64), nullable=False),
        sa.Column("receipt", sa.String(16), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.UniqueConstraint("receipt", name="service_answers_receipt"),
        sa.CheckConstraint(_STATES, name="service_answers_state"),
    )
    op.execute("INSERT INTO service_answers_new SELECT * FROM service_answers")
    # Or the old table's answers would stay in free pages, where no later removal reaches them.
    op.execute("PRAGMA secure_delete = ON")
    op.drop_table("service_answers")
    op.rename_table("service_answers_new", "service_answers")
