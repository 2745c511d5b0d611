"""The ledger: durable budgets, charged before an answer is computed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from reticent.accounting.chain import Action, Entry
from reticent.accounting.charges import Budget, Charge, charge_of, largest_fitting
from reticent.accounting.events import PrivacyEvent
from reticent.accounting.exports import Format, export_to
from reticent.accounting.reports import LedgerReport, Spending, report, spending
from reticent.accounting.schema import accounts, budgets, covers, entries, head, statements
from reticent.accounting.scopes import Scope
from reticent.accounting.statements import describe_statement, statement_of
from reticent.accounting.store import Store, Synchronous
from reticent.accounting.units import DELTA_UNIT, LARGEST, delta_grant, delta_value, epsilon_grant, epsilon_value
from reticent.accounting.verification import Verification, verify
from reticent.core.errors import BudgetExceeded, IncompatibleGuarantees, InvalidInput, LedgerUnavailable
from reticent.core.guarantees import Guarantee

_LONGEST_TEXT = 1000


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
        id: goes into the receipt's ``booked``.
        charge: what was spent.
        committed: whether a receipt was booked.
    """

    def __init__(self, ledger: Ledger, booking: _Booking, name: str, charge: Charge) -> None:
        self._ledger = ledger
        self._booking = booking
        self.id = f"{name}/{booking.entry.seq}"
        self.charge = charge
        self.committed = False

    def commit(self, receipt_id: str) -> None:
        """Books the receipt; the answer may leave once this returns.

        Args:
            receipt_id: whatever identifies the receipt, 1 to 1000 printable characters.

        Raises:
            InvalidInput: committed before, or not such a text.
            LedgerUnavailable: could not be written; the charge stays and no answer may leave.
        """
        if self.committed:
            raise InvalidInput(f"reservation {self.id} is committed already; reserve again for another answer")
        self._ledger._commit(self._booking, _text(receipt_id, "receipt_id"))
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
        >>> from dp_accounting import UnsupportedDpEvent
        >>> from reticent.core import AddRemove
        >>> one = PrivacyEvent("label", Guarantee(0.1, 0.0, AddRemove()), UnsupportedDpEvent())
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
        statement = statement_of(total)
        epsilon, delta = epsilon_grant(total.epsilon), delta_grant(total.delta)
        with self.store.write() as connection:
            tip = self._lock(connection)
            statement_id = _statement_id(connection, statement)
            row = _add_to_budget(connection, scope, statement, statement_id, epsilon, delta)
            entry = self._entry(tip, "grant", scope, statement, charge=(epsilon, delta))
            self._append(connection, tip, entry, statement_id, budget_id=row.id)
            return Budget.of_row(row, statement)

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
        charge = charge_of(event, answers=answers, slack_delta=slack_delta)
        statement = statement_of(event.guarantee)
        mechanism = _text(event.mechanism, "mechanism")
        with self.store.write() as connection:
            tip = self._lock(connection)
            covering = _covering(connection, scope)
            _check_statements(covering, statement, scope)
            standing = [Budget.of_row(row, statement) for row in covering]
            if all(budget.fits(charge) for budget in standing):
                units = (charge.epsilon, charge.delta)
                entry = self._entry(tip, "reserve", scope, statement, charge=units, answers=answers, mechanism=mechanism)
                return Reservation(self, self._charge(connection, tip, scope, entry, covering), tip.ledger[:8], charge)
        # Outside the transaction: finding the largest request that fits must not keep other writers waiting.
        raise BudgetExceeded(_refusal(charge, event, answers, slack_delta, standing))

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
            covering = _covering(connection, scope)
        _check_statements(covering, statement, scope)
        standing = [Budget.of_row(row, statement) for row in covering]
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

    def _commit(self, booking: _Booking, receipt: str) -> None:
        paid = booking.entry
        with self.store.write() as connection:
            tip = self._lock(connection)
            entry = self._entry(tip, "commit", booking.scope, paid.statement, reservation=paid.seq, receipt=receipt)
            self._append(connection, tip, entry, booking.statement_id, account_id=booking.account_id)
            connection.execute(_COUNT_COMMIT, {"account": booking.account_id})

    def _lock(self, connection: Connection) -> _Tip:
        """The last entry's place in the chain; on PostgreSQL also the lock that makes writers take turns."""
        row = connection.execute(_HEAD).first()
        if row is None:
            raise LedgerUnavailable(f"{self.store.name}: no ledger here; create one with `reticent ledger init`")
        return _Tip(row.ledger, row.seq, bytes(row.digest), self._clock())

    def _entry(
        self,
        tip: _Tip,
        action: Action,
        scope: Scope,
        statement: str,
        *,
        charge: tuple[int, int] = (0, 0),
        answers: int = 0,
        mechanism: str = "",
        reservation: int = 0,
        receipt: str = "",
    ) -> Entry:
        names = (scope.principal, scope.subject, scope.bundle)
        return Entry(tip.seq + 1, tip.at, action, *names, statement, *charge, answers, mechanism, reservation, receipt)

    def _charge(self, connection: Connection, tip: _Tip, scope: Scope, entry: Entry, covering: Sequence[Row[Any]]) -> _Booking:
        statement_id, account_id = covering[0].statement_id, covering[0].account_id
        if account_id is None:
            account_id = _open_account(connection, entry, statement_id, [row.id for row in covering])
        cost = {"e": entry.epsilon, "d": entry.delta}
        connection.execute(_CHARGE_BUDGETS, {"ids": [row.id for row in covering], **cost})
        connection.execute(_CHARGE_ACCOUNT, {"account": account_id, "n": entry.answers, "now": entry.at, **cost})
        self._append(connection, tip, entry, statement_id, account_id=account_id)
        return _Booking(scope, entry, statement_id, account_id)

    def _append(
        self,
        connection: Connection,
        tip: _Tip,
        entry: Entry,
        statement_id: int,
        budget_id: int | None = None,
        account_id: int | None = None,
    ) -> None:
        digest = entry.digest(tip.digest)
        values = {
            **{
                name: getattr(entry, name)
                for name in ("seq", "at", "action", "epsilon", "delta", "answers", "mechanism", "receipt")
            },
            "budget_id": budget_id,
            "account_id": account_id,
            "statement_id": statement_id,
            "reservation": entry.reservation or None,
            "digest": digest,
        }
        connection.execute(_INSERT_ENTRY, values)
        connection.execute(_MOVE_HEAD, {"to": entry.seq, "tip": digest})


@dataclass(frozen=True)
class _Booking:
    scope: Scope
    entry: Entry
    statement_id: int
    account_id: int


@dataclass(frozen=True)
class _Tip:
    ledger: str
    seq: int
    digest: bytes
    at: int


_HEAD = sa.select(head.c.ledger, head.c.seq, head.c.digest).where(head.c.id == 1).with_for_update()
_MOVE_HEAD = head.update().where(head.c.id == 1).values(seq=sa.bindparam("to"), digest=sa.bindparam("tip"))
_INSERT_ENTRY = entries.insert()
_CHARGE_BUDGETS = (
    budgets.update()
    .where(budgets.c.id.in_(sa.bindparam("ids", expanding=True)))
    .values(spent_epsilon=budgets.c.spent_epsilon + sa.bindparam("e"), spent_delta=budgets.c.spent_delta + sa.bindparam("d"))
)
_CHARGE_ACCOUNT = (
    accounts.update()
    .where(accounts.c.id == sa.bindparam("account"))
    .values(
        spent_epsilon=accounts.c.spent_epsilon + sa.bindparam("e"),
        spent_delta=accounts.c.spent_delta + sa.bindparam("d"),
        answers=accounts.c.answers + sa.bindparam("n"),
        reservations=accounts.c.reservations + 1,
        last_at=sa.bindparam("now"),
    )
)
_COUNT_COMMIT = accounts.update().where(accounts.c.id == sa.bindparam("account")).values(commits=accounts.c.commits + 1)
_BUDGET_COLUMNS = (*budgets.c, statements.c.statement)
_OF_ACCOUNT = (
    sa.select(*_BUDGET_COLUMNS, accounts.c.id.label("account_id"))
    .join(statements, statements.c.id == budgets.c.statement_id)
    .join(covers, covers.c.budget_id == budgets.c.id)
    .join(accounts, accounts.c.id == covers.c.account_id)
    .where(*(accounts.c[name] == sa.bindparam(name) for name in ("principal", "subject", "bundle")))
    .order_by(budgets.c.id)
)
_BY_PATTERN = (
    sa.select(*_BUDGET_COLUMNS, sa.null().label("account_id"))
    .join(statements, statements.c.id == budgets.c.statement_id)
    .where(*(budgets.c[name].in_(["", sa.bindparam(name)]) for name in ("principal", "subject", "bundle")))
    .order_by(budgets.c.id)
)


def _add_to_budget(connection: Connection, scope: Scope, statement: str, statement_id: int, epsilon: int, delta: int) -> Row[Any]:
    """The scope's budget after a grant; a new one starts with what its scope has spent so far."""
    there = connection.execute(
        sa.select(budgets).where(*(budgets.c[name] == value for name, value in scope.parts.items()))
    ).first()
    if there is not None:
        if there.statement_id != statement_id:
            raise _mixed(scope, statement)
        _check_size(scope, there.granted_epsilon + epsilon, there.granted_delta + delta)
        more = {"granted_epsilon": there.granted_epsilon + epsilon, "granted_delta": there.granted_delta + delta}
        return connection.execute(budgets.update().where(budgets.c.id == there.id).values(more).returning(budgets)).one()
    counted = connection.execute(
        sa.select(accounts).where(*(accounts.c[name] == value for name, value in scope.parts.items() if value))
    ).all()
    if any(row.statement_id != statement_id for row in counted):
        raise _mixed(scope, statement)
    spent_epsilon, spent_delta = sum(row.spent_epsilon for row in counted), sum(row.spent_delta for row in counted)
    if spent_epsilon > epsilon or spent_delta > delta:
        raise BudgetExceeded(
            f"{scope.describe()}: requested a budget of epsilon={epsilon_value(epsilon):g}, delta={delta_value(delta):g}; "
            f"already spent epsilon={epsilon_value(spent_epsilon):g}, delta={delta_value(spent_delta):g}; grant at least that"
        )
    amounts = {"granted_epsilon": epsilon, "granted_delta": delta, "spent_epsilon": spent_epsilon, "spent_delta": spent_delta}
    made = connection.execute(
        budgets.insert().values(**scope.parts, statement_id=statement_id, **amounts).returning(budgets)
    ).one()
    if counted:
        links = [{"account_id": row.id, "budget_id": made.id, "statement_id": statement_id} for row in counted]
        connection.execute(covers.insert(), links)
    return made


def _check_size(scope: Scope, epsilon: int, delta: int) -> None:
    if epsilon > LARGEST or delta >= DELTA_UNIT:
        raise InvalidInput(
            f"{scope.describe()}: expected a budget with delta below 1 and epsilon at most {epsilon_value(LARGEST):g}, got "
            f"epsilon={epsilon_value(epsilon):g}, delta={delta_value(delta):g} in total; grant less"
        )


def _covering(connection: Connection, scope: Scope) -> Sequence[Row[Any]]:
    """Every budget that covers ``scope``, with the account's id where the scope has spent before.

    Raises:
        BudgetExceeded: there is none.
    """
    rows: list[Row[Any]] = list(connection.execute(_OF_ACCOUNT, scope.parts))
    rows = rows or list(connection.execute(_BY_PATTERN, scope.parts))
    if not rows:
        raise BudgetExceeded(
            f"no budget covers {scope.describe()}; requested more than the 0 that is left; the largest request that would fit is "
            "0 answers; grant a budget with `reticent ledger grant`"
        )
    return rows


def _check_statements(covering: Sequence[Row[Any]], statement: str, scope: Scope) -> None:
    for row in covering:
        if row.statement != statement:
            other = Scope(row.principal, row.subject, row.bundle)
            raise IncompatibleGuarantees(
                f"{scope.describe()}: costs compose only within one kind and adjacency: the budget of {other.describe()} is for "
                f"{describe_statement(row.statement)}, the request for {describe_statement(statement)}"
            )


def _open_account(connection: Connection, entry: Entry, statement_id: int, covering: list[int]) -> int:
    zeros = dict.fromkeys(("spent_epsilon", "spent_delta", "answers", "reservations", "commits"), 0)
    scope = {"principal": entry.principal, "subject": entry.subject, "bundle": entry.bundle}
    new = accounts.insert().values(**scope, **zeros, statement_id=statement_id, last_at=entry.at)
    made = connection.execute(new.returning(accounts.c.id)).scalar_one()
    links = [{"account_id": made, "budget_id": budget, "statement_id": statement_id} for budget in covering]
    connection.execute(covers.insert(), links)
    return int(made)


def _statement_id(connection: Connection, statement: str) -> int:
    there = connection.execute(sa.select(statements.c.id).where(statements.c.statement == statement)).scalar()
    if there is None:
        there = connection.execute(statements.insert().values(statement=statement).returning(statements.c.id)).scalar_one()
    return int(there)


def _mixed(scope: Scope, statement: str) -> IncompatibleGuarantees:
    return IncompatibleGuarantees(
        f"{scope.describe()}: costs compose only within one kind and adjacency; this scope already holds another than "
        f"{describe_statement(statement)}; use another scope"
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
