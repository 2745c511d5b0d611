"""Ledgers, and a PostgreSQL server of our own, as the ledger's tests have them."""

from __future__ import annotations

from tests.ledger.conftest import ledger_url, postgres_server, postgres_url

__all__ = ["ledger_url", "postgres_server", "postgres_url"]
