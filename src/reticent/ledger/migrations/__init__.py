"""Alembic migrations of the ledger's schema; they travel inside the wheel."""
