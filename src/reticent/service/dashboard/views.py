"""What the pages show, read from the ledger and the bundles. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from reticent.core.errors import ReticentError
from reticent.ledger.chain import LOWERED
from reticent.ledger.charges import Budget, describe_statement, largest_fitting, statement_of
from reticent.ledger.ledger import Ledger
from reticent.ledger.schema import accounts, budgets, entries
from reticent.ledger.store import Store
from reticent.service.catalogue import Catalogue

NEARLY = 0.9
"""Share of a grant from which on a budget counts as nearly spent."""

_ACTIONS = {
    "grant": "granted",
    "gap": "charged for lost entries",
    "policy": "policy set",
    "accept": "older copy accepted",
    "note": "keys, plans or answers changed",
}


@dataclass(frozen=True)
class BudgetBar:
    """One budget, and what still fits.

    Attributes:
        budget: the budget.
        fits: pairs of a served bundle's name and how many of its answers still fit.
    """

    budget: Budget
    fits: tuple[tuple[str, int], ...]

    @property
    def share(self) -> float:
        """Return the spent part of the grant, 0 to 1, of epsilon or delta, whichever is larger."""
        found = self.budget
        shares = [found.spent_epsilon / found.granted_epsilon if found.granted_epsilon else 1.0]
        shares += [found.spent_delta / found.granted_delta] if found.granted_delta else []
        return max(shares)

    @property
    def state(self) -> str:
        """Return "spent", "nearly spent" or ""."""
        if self.share >= 1 or (self.fits and not any(number for _, number in self.fits)):
            return "spent"
        return "nearly spent" if self.share >= NEARLY else ""

    @property
    def statement(self) -> str:
        """Return the meaning of the budget's costs."""
        return describe_statement(self.budget.statement)


def budget_bars(standing: Iterable[Budget], catalogue: Catalogue) -> list[BudgetBar]:
    """Return budgets with what still fits, in the order given."""
    costs = [
        (bundle, statement_of(bundle.guarantee))
        for bundle in catalogue
        if bundle.route == "answers"
    ]
    return [
        BudgetBar(
            budget,
            tuple(
                (bundle.name, largest_fitting(bundle.price.event, 0.0, [budget]))
                for bundle, statement in costs
                if statement == budget.statement
                and budget.scope.bundle in ("", bundle.identity)
                and (bundle.subject is None or budget.scope.subject in ("", bundle.subject))
            ),
        )
        for budget in standing
    ]


def last_entries(
    store: Store, *, most: int, before: int | None = None, receipt: str = ""
) -> Sequence[Any]:
    """Return rows of the last entries, newest first, each with its scope.

    An entry that books an answer is shown with its charge, whose ``answered`` is the receipt.

    Args:
        store: the ledger's store.
        most: number of entries, at least 1.
        before: position that all entries must precede, or None for the last ones.
        receipt: identifier of the one receipt whose entry is wanted, or "" for all.
    """
    commits = entries.alias("commits")
    where = [entries.c.action != "commit"]
    if before is not None:
        where.append(entries.c.seq < before)
    if receipt:
        where.append(commits.c.receipt == receipt)
    columns = ("principal", "subject", "bundle")
    scope = [
        sa.func.coalesce(accounts.c[name], budgets.c[name], "").label(name) for name in columns
    ]
    query = (
        sa.select(entries, *scope, commits.c.receipt.label("answered"))
        .outerjoin(accounts, accounts.c.id == entries.c.account_id)
        .outerjoin(budgets, budgets.c.id == entries.c.budget_id)
        .outerjoin(commits, commits.c.reservation == entries.c.seq)
        .where(*where)
        .order_by(entries.c.seq.desc())
        .limit(most)
    )
    with store.read() as connection:
        return connection.execute(query).all()


def what(entry: Any) -> str:
    """Say in words what an entry of ``last_entries`` did."""
    if entry.answered is not None:
        return "answered"
    if entry.action == "reserve":  # such a request failed, or is under way
        return "charged, no answer booked"
    lowered = entry.action == "grant" and entry.mechanism == LOWERED
    return "taken back" if lowered else _ACTIONS[entry.action]


def problem_of(ledger: Ledger) -> str:
    """Return why not to rely on the ledger, or "" where it holds the entry that its anchor, kept
    outside of it, names.
    """
    try:
        ledger.check_anchor()
    except ReticentError as error:
        return str(error)
    return ""
