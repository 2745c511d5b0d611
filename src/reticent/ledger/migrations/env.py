"""Alembic's entry point, which runs in the connection and transaction that ``store`` hands over."""

from __future__ import annotations

from alembic import context

from reticent.ledger.schema import metadata

if (
    __name__ == "env_py"
):  # the name that alembic runs this file under; whoever only imports it starts nothing
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        transactional_ddl=False,
    )
    context.run_migrations()
