"""What the pages show, as plain values that are read from the ledger and the bundles.

Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from reticent.core.errors import ReticentError
from reticent.core.guarantees import GuaranteeCard
from reticent.ledger.chain import LOWERED
from reticent.ledger.charges import (
    Budget,
    delta_value,
    describe_statement,
    epsilon_value,
    largest_fitting,
    statement_of,
)
from reticent.ledger.ledger import Ledger
from reticent.ledger.reports import LedgerReport
from reticent.ledger.schema import accounts, budgets, entries
from reticent.ledger.store import Store
from reticent.service.catalogue import Catalogue, ServedBundle

NEARLY = 0.9
"""Share of a grant from which on a budget counts as nearly spent."""

_ACTIONS = {
    "grant": "granted",
    "reserve": "charged",
    "commit": "answered",
    "gap": "charged for lost entries",
    "policy": "policy set",
    "accept": "older copy accepted",
    "note": "keys, plans or answers changed",
}

_ROUTES = {
    "answers": "Rows are sent here, and every answer is charged.",
    "device": "Rows stay on the device, which releases them itself; only released values are sent.",
    "free": "Its predictions were paid for when it was fitted.",
}


def _what(row: Any) -> str:
    """Say in words what an entry did."""
    if row.answered is not None:
        return "answered"
    lowered = row.action == "grant" and row.mechanism == LOWERED
    return "taken back" if lowered else _ACTIONS[row.action]


@dataclass(frozen=True)
class BudgetBar:
    """One budget.

    Attributes:
        principal, subject, bundle: its scope, with "" for any. ``bundle`` is a name where it is
            served.
        granted, spent, left: epsilon.
        granted_delta, left_delta: delta.
        share: spent part of what was granted, 0 to 1, of whichever of epsilon and delta is closer
            to its end.
        statement: meaning of its costs.
        fits: pairs of a served bundle's name and how many of its answers still fit.
    """

    principal: str
    subject: str
    bundle: str
    granted: float
    spent: float
    left: float
    granted_delta: float
    left_delta: float
    share: float
    statement: str
    fits: tuple[tuple[str, int], ...]

    @property
    def state(self) -> str:
        """Return "spent", "nearly spent" or ""."""
        if self.share >= 1 or (self.fits and not any(number for _, number in self.fits)):
            return "spent"
        return "nearly spent" if self.share >= NEARLY else ""


@dataclass(frozen=True)
class EntryLine:
    """One entry of the ledger.

    Attributes:
        seq, at: position, and microseconds since 1970.
        action: what it did, in words.
        principal, subject, bundle: its scope.
        epsilon, answers: its charge, and the number of answers it paid for.
        mechanism: the mechanism that answered.
        receipt: identifier of the receipt, for what was answered.
        open: whether it was charged and no answer was booked. Such a request failed, or is under
            way.
        digest: first digits of its digest.
    """

    seq: int
    at: int
    action: str
    principal: str
    subject: str
    bundle: str
    epsilon: float
    answers: int
    mechanism: str
    receipt: str
    open: bool
    digest: str


@dataclass(frozen=True)
class BundleView:
    """A bundle in plain words.

    Attributes:
        name, identity, system: its names, as clients know them.
        how: the way it is asked.
        epsilon, delta: cost of one answer.
        signed: whether its files are signed.
        card: its guarantee card.
    """

    name: str
    identity: str
    system: str
    how: str
    epsilon: float
    delta: float
    signed: bool
    card: GuaranteeCard


@dataclass(frozen=True)
class LedgerState:
    """The ledger's name and end, and whether it is what it was.

    Attributes:
        name: name of the ledger.
        entries: number of entries.
        anchor: position and digest of the last entry.
        problem: reason not to rely on it, or "".
    """

    name: str
    entries: int
    anchor: str
    problem: str


def bundle_views(catalogue: Catalogue) -> tuple[BundleView, ...]:
    """Return all bundles that are served, by name."""
    found = [bundle_view(bundle) for bundle in catalogue]
    return tuple(sorted(found, key=lambda view: view.name))


def bundle_view(bundle: ServedBundle) -> BundleView:
    """Return the view of one bundle."""
    return BundleView(
        bundle.name,
        bundle.identity,
        type(bundle.system).__name__,
        _ROUTES[bundle.route],
        bundle.guarantee.epsilon,
        bundle.guarantee.delta,
        (bundle.folder / "signature.json").is_file(),
        bundle.card(),
    )


def budget_bars(standing: Iterable[Budget], catalogue: Catalogue) -> tuple[BudgetBar, ...]:
    """Return budgets with what still fits, in the order given."""
    served = [bundle for bundle in catalogue if bundle.route == "answers"]
    costs = [(bundle, statement_of(bundle.guarantee), bundle.price.event) for bundle in served]
    names = _names(catalogue)
    found = []
    for budget in standing:
        scope = budget.scope
        fits = tuple(
            (bundle.name, largest_fitting(event, 0.0, [budget]))
            for bundle, statement, event in costs
            if statement == budget.statement
            and scope.bundle in ("", bundle.identity)
            and (bundle.subject is None or scope.subject in ("", bundle.subject))
        )
        shares = (
            [budget.spent_epsilon / budget.granted_epsilon] if budget.granted_epsilon else [1.0]
        )
        if budget.granted_delta:
            shares.append(budget.spent_delta / budget.granted_delta)
        found.append(
            BudgetBar(
                scope.principal,
                scope.subject,
                names.get(scope.bundle, scope.bundle),
                epsilon_value(budget.granted_epsilon),
                epsilon_value(budget.spent_epsilon),
                epsilon_value(budget.left_epsilon),
                delta_value(budget.granted_delta),
                delta_value(budget.left_delta),
                max(shares),
                describe_statement(budget.statement),
                fits,
            )
        )
    return tuple(found)


def last_entries(
    store: Store, catalogue: Catalogue, *, most: int, before: int | None = None, receipt: str = ""
) -> tuple[EntryLine, ...]:
    """Return the last entries, newest first. Entries that book an answer are shown with its charge.

    Args:
        store: the ledger's store.
        catalogue: the bundles, for their names.
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
    names = _names(catalogue)
    with store.read() as connection:
        rows: Sequence[Any] = connection.execute(query).all()
    return tuple(
        EntryLine(
            row.seq,
            row.at,
            _what(row),
            row.principal,
            row.subject,
            names.get(row.bundle, row.bundle),
            epsilon_value(row.epsilon),
            row.answers,
            row.mechanism,
            row.answered or "",
            row.action == "reserve" and row.answered is None,
            row.digest.hex()[:12],
        )
        for row in rows
    )


def ledger_state(ledger: Ledger, report: LedgerReport) -> LedgerState:
    """Return whether the ledger holds the entry that its anchor, kept outside of it, names."""
    try:
        ledger.check_anchor()
        problem = ""
    except ReticentError as error:
        problem = str(error)
    return LedgerState(report.ledger, report.entries, report.anchor, problem)


def _names(catalogue: Catalogue) -> dict[str, str]:
    return {bundle.identity: bundle.name for bundle in catalogue}
