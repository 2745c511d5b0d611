"""Keys of the service, and its answers: one row for each request that was charged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("principal", sa.String(200), nullable=False),
        sa.Column("role", sa.String(6), nullable=False),
        sa.Column("bundles", sa.Text(), nullable=False),
        sa.Column("subjects", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=True),
        sa.Column("revoked", sa.BigInteger(), nullable=True),
        sa.UniqueConstraint("digest", name="api_keys_once"),
        sa.CheckConstraint("role = 'client' OR role = 'owner'", name="api_keys_role"),
    )
    op.create_table(
        "service_answers",
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
        sa.CheckConstraint(
            "(state = 'answered' AND receipt IS NOT NULL AND body IS NOT NULL) OR "
            "((state = 'charged' OR state = 'lost') AND receipt IS NULL AND body IS NULL)",
            name="service_answers_state",
        ),
    )
