"""The ledger: durable budgets, charged before an answer is computed."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy.engine import Connection

from reticent.accounting import coverage, postings
from reticent.accounting.charges import Budget, Charge, charge_of, largest_fitting
from reticent.accounting.coverage import Cover
from reticent.accounting.events import PrivacyEvent
from reticent.accounting.exports import Format, export_to
from reticent.accounting.postings import Booking, Claim, Tip
from reticent.accounting.reports import LedgerReport, Spending, report, spending
from reticent.accounting.scopes import Scope
from reticent.accounting.statements import statement_of
from reticent.accounting.store import Store, Synchronous
from reticent.accounting.units import delta_grant, delta_value, epsilon_grant, epsilon_value
from reticent.accounting.verification import Verification, verify
from reticent.core.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from reticent.core.guarantees import Guarantee

_LONGEST_TEXT = 1000
_NAMED = 2
"""Scopes that a refusal names at most."""


@dataclass(frozen=True)
class Preview:
    """What a request would do; nothing was spent.

    Attributes:
        fits: whether it would be accepted now.
        charge: what it would cost.
        largest: the largest number of answers that would fit now.
        budgets: every budget that covers it, as it stands.
    """

    fits: bool
    charge: Charge
    largest: int
    budgets: tuple[Budget, ...]


class Reservation:
    """A charge that is already durable, and the place to put the receipt of what it paid for.

    As a context manager it insists on that receipt: a block that ends without ``commit`` raises, so that an answer without a
    receipt does not leave it. A block that raises, or a process that dies, leaves the reservation spent and open.

    Attributes:
        id: goes into the receipt's ``booked``: the ledger's first letters and the entry, as "1a2b3c4d/7"; of a charge to several
            scopes the first and the last of its consecutive entries, as "1a2b3c4d/7-9".
        charge: what was spent, by all its scopes together.
        scopes: how many were charged.
        committed: whether a receipt was booked.
    """

    def __init__(self, ledger: Ledger, bookings: Sequence[Booking], name: str, charge: Charge) -> None:
        first, last = bookings[0].entry.seq, bookings[-1].entry.seq
        self._ledger = ledger
        self._bookings = tuple(bookings)
        self.id = f"{name[:8]}/{first}" if first == last else f"{name[:8]}/{first}-{last}"
        self.charge = charge
        self.scopes = len(self._bookings)
        self.committed = False

    def commit(self, receipt_id: str) -> None:
        """Books the receipt, for every scope that was charged; the answer may leave once this returns.

        Args:
            receipt_id: whatever identifies the receipt, 1 to 1000 printable characters.

        Raises:
            InvalidInput: committed before, or not such a text.
            LedgerUnavailable: could not be written; the charge stays and no answer may leave.
        """
        if self.committed:
            raise InvalidInput(f"reservation {self.id} is committed already; reserve again for another answer")
        self._ledger._commit(self._bookings, _text(receipt_id, "receipt_id"))
        self.committed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None and not self.committed:
            raise InvalidInput(f"reservation {self.id} ended without commit(receipt_id); its charge stays, release nothing")


class Ledger:
    """Budgets that cannot be overspent: by one process or many, through crashes, in SQLite or PostgreSQL.

    A request reserves (one transaction: every covering budget is checked and charged, or none is), computes, and commits its
    receipt. What is reserved stays spent.

    **Guarantee.** All answers booked under a budget are together (granted epsilon, granted delta)-private under the budget's kind
    and adjacency, even if every request is chosen from earlier answers: costs are added as whole units rounded up, which is the
    basic filter of ``filters.BasicFilter`` (Rogers, Roth, Ullman and Vadhan 2016). The caller must book every answer before it
    leaves and name the scope truthfully.

    Example:
        >>> import tempfile
        >>> from reticent.core import AddRemove
        >>> one = PrivacyEvent("label", Guarantee(0.1, 0.0, AddRemove()))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger.create(f"{folder}/budgets.db")
        ...     _ = ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 1e-6, AddRemove()))
        ...     with ledger.reserve(Scope(principal="acme", subject="ward-7"), one, answers=4) as reservation:
        ...         answers = "computed here"
        ...         reservation.commit("receipt-1")
        ...     ledger.preview(Scope(subject="ward-7"), one, answers=1).largest
        ...     ledger.close()
        6
    """

    def __init__(self, store: Store, *, clock: Callable[[], int] | None = None) -> None:
        self.store = store
        self._clock = clock or (lambda: time.time_ns() // 1000)

    @classmethod
    def create(cls, url: str | Path, *, synchronous: Synchronous = "FULL", lock_timeout: float = 60.0) -> Self:
        """The ledger at ``url``, made or brought up to date first; see ``Store`` for the arguments.

        Raises:
            LedgerUnavailable: it cannot be reached or written.
        """
        store = Store(url, synchronous=synchronous, lock_timeout=lock_timeout)
        store.create()
        return cls(store)

    @classmethod
    def open(cls, url: str | Path, *, synchronous: Synchronous = "FULL", lock_timeout: float = 60.0) -> Self:
        """The ledger that exists at ``url``; see ``Store`` for the arguments.

        Raises:
            LedgerUnavailable: there is none, it cannot be reached, or its schema is of another version.
        """
        store = Store(url, synchronous=synchronous, lock_timeout=lock_timeout)
        store.check()
        return cls(store)

    def close(self) -> None:
        """Closes idle connections; the ledger may be used again."""
        self.store.close()

    def grant(self, scope: Scope, total: Guarantee) -> Budget:
        """Adds ``total`` to the budget of ``scope``. A new budget starts with what its scope has spent before.

        Args:
            scope: what the budget covers.
            total: how much more may be spent, rounded down to whole units; its kind and adjacency are the budget's for good.

        Returns:
            The budget as it stands now.

        Raises:
            IncompatibleGuarantees: the total promises nothing, or the scope has spent or granted under another kind or adjacency.
            BudgetExceeded: the scope has already spent more than this.
            LedgerUnavailable: could not be written.
        """
        return self.grant_each([scope], total)[0]

    def grant_each(self, scopes: Iterable[Scope], total: Guarantee) -> tuple[Budget, ...]:
        """Adds the same ``total`` to the budget of every scope: all of them or none. See ``grant``.

        Args:
            scopes: what the budgets cover, at least one. One that is there several times is granted once.
            total: how much more may be spent under each budget.

        Returns:
            The budgets as they stand now, in the order in which their scopes come first.

        Raises:
            InvalidInput: no scopes, or something else than scopes.
            IncompatibleGuarantees, BudgetExceeded, LedgerUnavailable: as ``grant``; nothing was granted to any.
        """
        wanted = tuple(dict.fromkeys(_scopes(scopes)))
        statement = statement_of(total)
        epsilon, delta = epsilon_grant(total.epsilon), delta_grant(total.delta)
        with self.store.write() as connection:
            tip = self._lock(connection)
            return tuple(postings.post_grants(connection, tip, wanted, statement=statement, epsilon=epsilon, delta=delta))

    def reserve(self, scope: Scope, event: PrivacyEvent, *, answers: int, slack_delta: float = 0.0) -> Reservation:
        """Charges every budget that covers ``scope``, durably, before anything is computed. One call, one entry.

        Args:
            scope: whose request, whose data, which bundle.
            event: the cost of one answer.
            answers: how many answers the call pays for, withheld ones included, at least 1.
            slack_delta: extra delta that this call may spend to get a smaller epsilon for its batch of up to 65,536 answers by
                optimal composition; 0 adds up epsilon and delta. It is spent only where it makes epsilon smaller.

        Raises:
            BudgetExceeded: it does not fit, or no budget covers the scope; nothing was charged.
            IncompatibleGuarantees: the event promises nothing, or a covering budget has another kind or adjacency; nothing was
                charged.
            LedgerUnavailable: could not be written; nothing may be released.
        """
        _scopes([scope])
        charge = charge_of(event, answers=answers, slack_delta=slack_delta)
        statement = statement_of(event.guarantee)
        mechanism = _text(event.mechanism, "mechanism")
        with self.store.write() as connection:
            tip = self._lock(connection)
            cover = _covered(coverage.covering(connection, scope))
            coverage.check_statements(cover, statement)
            standing = [Budget.of_row(row, statement) for row in cover.budgets]
            if all(budget.fits(charge) for budget in standing):
                claims = [Claim(cover, answers, charge)]
                bookings = postings.post_charges(connection, tip, claims, statement=statement, mechanism=mechanism)
                return Reservation(self, bookings, tip.ledger, charge)
        # Outside the transaction: finding the largest request that fits must not keep other writers waiting.
        raise BudgetExceeded(_refusal(charge, event, answers, slack_delta, standing))

    def reserve_each(self, scopes: Iterable[Scope], event: PrivacyEvent) -> Reservation:
        """Charges every answer to a scope of its own, durably, before anything is computed: all of them or none.

        For the rows of a table that belong to different people: the scope of each row names its person. Each of k answers under
        one scope is paid for, as ``reserve(scope, event, answers=k)`` does it; each different scope is one entry, and all of
        them are one transaction. A budget that covers several scopes pays for all of them.

        **Guarantee.** As of the ledger, for each scope by itself, where the answer that is charged to it depends on nothing that
        belongs to another one.

        Args:
            scopes: one for each answer, at least one, in any order; withheld answers count.
            event: the cost of one answer.

        Raises:
            InvalidInput: no scopes, or something else than scopes.
            BudgetExceeded: one or more scopes lack budget, by themselves or together; nothing was charged to any. The message
                says how many, and names two of them at most.
            IncompatibleGuarantees: the event promises nothing, or a covering budget has another kind or adjacency; nothing was
                charged.
            LedgerUnavailable: could not be written; nothing may be released.
        """
        answers = Counter(_scopes(scopes))
        charges = {many: charge_of(event, answers=many, slack_delta=0.0) for many in set(answers.values())}
        statement = statement_of(event.guarantee)
        mechanism = _text(event.mechanism, "mechanism")
        with self.store.write() as connection:
            tip = self._lock(connection)
            claims = [
                Claim(cover, answers[cover.scope], charges[answers[cover.scope]])
                for cover in coverage.covering_each(connection, tuple(answers))
            ]
            for claim in claims:
                coverage.check_statements(claim.cover, statement)
            short = _short(claims, statement)
            if not short:
                bookings = postings.post_charges(connection, tip, claims, statement=statement, mechanism=mechanism)
                return Reservation(self, bookings, tip.ledger, _together(claims))
        raise BudgetExceeded(_refusal_of_many(short, len(claims), answers.total(), event))

    def preview(self, scope: Scope, event: PrivacyEvent, *, answers: int, slack_delta: float = 0.0) -> Preview:
        """What ``reserve`` would do now; costs nothing and writes nothing.

        Raises:
            IncompatibleGuarantees: as ``reserve``.
            BudgetExceeded: no budget covers the scope.
            LedgerUnavailable: cannot be read.
        """
        charge = charge_of(event, answers=answers, slack_delta=slack_delta)
        statement = statement_of(event.guarantee)
        with self.store.read() as connection:
            cover = _covered(coverage.covering(connection, scope))
        coverage.check_statements(cover, statement)
        standing = [Budget.of_row(row, statement) for row in cover.budgets]
        largest = largest_fitting(event, slack_delta, standing)
        return Preview(all(budget.fits(charge) for budget in standing), charge, largest, tuple(standing))

    def report(self, scope: Scope | None = None, *, limit: int = 100) -> LedgerReport:
        """What is granted, spent and left within ``scope``, and by whom; see ``reports.report``."""
        return report(self.store, scope, limit=limit)

    def spending(self, scope: Scope | None = None, *, points: int = 200) -> list[Spending]:
        """What the tightest budgets within ``scope`` have spent over time; see ``reports.spending``."""
        return spending(self.store, scope, points=points)

    def verify(self, *, anchor: str | None = None) -> Verification:
        """Recomputes the chain and every total; see ``verification.verify``."""
        return verify(self.store, anchor=anchor)

    def export(self, path: str | Path, *, format: Format, overwrite: bool) -> int:
        """Writes every entry to ``path`` as JSON Lines or CSV; see ``exports.export_to``."""
        return export_to(self.store, path, format=format, overwrite=overwrite)

    def _commit(self, bookings: Sequence[Booking], receipt: str) -> None:
        with self.store.write() as connection:
            postings.post_commits(connection, self._lock(connection), bookings, receipt=receipt)

    def _lock(self, connection: Connection) -> Tip:
        tip = postings.last_entry(connection, at=self._clock())
        if tip is None:
            raise LedgerUnavailable(f"{self.store.name}: no ledger here; create one with `reticent ledger init`")
        return tip


@dataclass(frozen=True)
class _Shortfall:
    """A budget that many claims do not fit into together, or None where nothing covers a claim; the claims; their cost."""

    budget: Budget | None
    claims: list[Claim]
    charge: Charge


def _scopes(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    if isinstance(scopes, Scope | str):
        raise InvalidInput(f"scopes: expected one Scope for each answer, got a single {type(scopes).__name__}")
    found = tuple(scopes)
    for scope in found:
        if not isinstance(scope, Scope):
            raise InvalidInput(f"scope: expected a Scope, got {type(scope).__name__}")
    if not found:
        raise InvalidInput("scopes: expected at least one Scope, got none")
    return found


def _covered(cover: Cover) -> Cover:
    if not cover.budgets:
        raise BudgetExceeded(
            f"no budget covers {cover.scope.describe()}; requested more than the 0 that is left; the largest request that would "
            "fit is 0 answers; grant a budget with `reticent ledger grant`"
        )
    return cover


def _together(claims: Sequence[Claim]) -> Charge:
    return Charge(sum(claim.charge.epsilon for claim in claims), sum(claim.charge.delta for claim in claims), "basic")


def _short(claims: Sequence[Claim], statement: str) -> list[_Shortfall]:
    """Every budget that cannot pay for all its claims, and the claims that nothing covers."""
    rows = {row.id: row for claim in claims for row in claim.cover.budgets}
    paying: defaultdict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        for row in claim.cover.budgets:
            paying[row.id].append(claim)
    short = [_Shortfall(None, [claim], claim.charge) for claim in claims if not claim.cover.budgets]
    for number, mine in paying.items():
        budget, charge = Budget.of_row(rows[number], statement), _together(mine)
        if not budget.fits(charge):
            short.append(_Shortfall(budget, mine, charge))
    return short


def _refusal_of_many(short: Sequence[_Shortfall], scopes: int, answers: int, event: PrivacyEvent) -> str:
    lacking = {claim.cover.scope for shortfall in short for claim in shortfall.claims}
    named = []
    for shortfall in short[:_NAMED]:
        if shortfall.budget is None:
            named.append(f"no budget covers {shortfall.claims[0].cover.scope.describe()}")
            continue
        asked = sum(claim.answers for claim in shortfall.claims)
        fit = largest_fitting(event, 0.0, [shortfall.budget])
        named.append(
            f"{shortfall.budget.describe()}; requested of it epsilon={epsilon_value(shortfall.charge.epsilon):g}, "
            f"delta={delta_value(shortfall.charge.delta):g} for {asked} answer(s), of which {fit} would fit"
        )
    more = f" | and {len(short) - len(named)} more" if len(short) > len(named) else ""
    return (
        f"requested {answers} answer(s) of {event.mechanism} under {scopes} scope(s), each answer at "
        f"epsilon={event.guarantee.epsilon:g}, delta={event.guarantee.delta:g}; {len(lacking)} of the scopes lack budget: "
        f"{' | '.join(named)}{more}; grant more or leave their rows out; nothing was charged"
    )


def _refusal(charge: Charge, event: PrivacyEvent, answers: int, slack_delta: float, standing: list[Budget]) -> str:
    tightest = [budget.describe() for budget in standing if not budget.fits(charge)]
    return (
        f"requested {answers} answer(s) of {event.mechanism} at epsilon={epsilon_value(charge.epsilon):g}, "
        f"delta={delta_value(charge.delta):g}; {' | '.join(tightest)}; "
        f"the largest request that would fit is {largest_fitting(event, slack_delta, standing)} answer(s); nothing was charged"
    )


def _text(value: str, name: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT or not value.isprintable():
        raise InvalidInput(f"{name}: expected 1 to {_LONGEST_TEXT} printable characters, got {value!r:.60}")
    return value
