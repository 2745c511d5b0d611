"""Counts of prepaid plans: which of a plan's queries were asked, in one place for all processes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the table."""
    op.create_table(
        "plan_counts",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("booked", sa.String(200), nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("queries", "answers", "asked", "answered")
        ),
        sa.CheckConstraint("asked BETWEEN 0 AND queries", name="plan_counts_asked"),
        sa.CheckConstraint("answered BETWEEN 0 AND answers", name="plan_counts_answered"),
    )
