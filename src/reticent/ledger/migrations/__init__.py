"""Alembic migrations of the ledger's schema. They travel inside the wheel."""
