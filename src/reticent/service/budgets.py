"""The budgets that a key may see: those that its own requests count against. An owner sees all."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from reticent.ledger.charges import Budget, delta_value, describe_statement, epsilon_value
from reticent.ledger.schema import budgets, statements
from reticent.ledger.store import Store
from reticent.service.keys import ApiKey

MOST = 1000
"""Budgets in one answer at most; ``subject`` and ``bundle`` narrow them down."""


def visible_budgets(
    store: Store, key: ApiKey, *, subject: str | None, bundle: str | None
) -> list[dict[str, Any]]:
    """Return budgets as plain values, in the order of their scopes.

    Args:
        store: the ledger's store.
        key: the key of whoever looks.
        subject, bundle: the one subject or bundle whose budgets are wanted, or None for all.

    Raises:
        LedgerUnavailable: the ledger cannot be read.
    """
    query = (
        sa.select(budgets, statements.c.statement)
        .join(statements, statements.c.id == budgets.c.statement_id)
        .order_by(budgets.c.subject, budgets.c.principal, budgets.c.bundle)
    )
    if key.role != "owner":
        query = query.where(budgets.c.principal.in_(["", key.principal]))
    if subject is not None:
        query = query.where(budgets.c.subject == subject)
    if bundle is not None:
        query = query.where(budgets.c.bundle == bundle)
    found: list[dict[str, Any]] = []
    with store.read() as connection:
        for row in connection.execute(query):
            if key.role == "owner" or _counts(key, row.subject, row.bundle):
                found.append(_plain(Budget.of_row(row)))
            if len(found) == MOST:
                break
    return found


def _counts(key: ApiKey, subject: str, bundle: str) -> bool:
    return (not subject or key.may_charge(subject)) and (not bundle or key.may_ask(bundle))


def _plain(budget: Budget) -> dict[str, Any]:
    return {
        "scope": budget.scope.parts,
        "statement": describe_statement(budget.statement),
        "granted": _amount(budget.granted_epsilon, budget.granted_delta),
        "spent": _amount(budget.spent_epsilon, budget.spent_delta),
        "left": _amount(budget.left_epsilon, budget.left_delta),
    }


def _amount(epsilon: int, delta: int) -> dict[str, float]:
    return {"epsilon": epsilon_value(epsilon), "delta": delta_value(delta)}
