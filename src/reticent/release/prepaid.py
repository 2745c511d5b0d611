"""Answers that are paid for once, as a whole, and counted in all processes that give them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from reticent.accounting.events import PrivacyEvent
from reticent.core.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from reticent.core.processes import HomeProcess
from reticent.core.scopes import Scope
from reticent.core.turns import Turn
from reticent.noise import Sampler
from reticent.release.paying import (
    Books,
    Entry,
    Payment,
    Price,
    Scopes,
    one_scope,
    receipt_of,
    reserved_once,
)

if TYPE_CHECKING:
    from reticent.ledger.charging import Reservation
    from reticent.ledger.counters import PlanCounter
    from reticent.ledger.ledger import Ledger


class Prepaid:
    """A plan of answers at the cost of one event, charged before the first of them.

    **Guarantee.** Over all threads, processes and copies at most ``queries`` are asked and at most
    ``answers`` of them answered. Without a ledger only the original object, in the process that
    made it, has any: a fork, a copy and an unpickled one have none. With a ledger, which counts
    them, all go on together. A plan without a limit (``queries=None``) counts in memory, and not by
    numbers of queries, so a copy of it has none with a ledger either.

    Args:
        event: the cost of all answers together.
        queries: the most that may be asked, at least 1, or None for no limit.
        answers: the most that may be answered, or None for as many as ``queries``.

    Attributes:
        entry: the place of the charge in its ledger, or None before one.
    """

    def __init__(
        self, event: PrivacyEvent, *, queries: int | None, answers: int | None = None
    ) -> None:
        self.event, self.queries = event, queries
        self.answers = queries if answers is None else answers
        self.entry: Entry | None = None
        self._name = token_hex(16)
        self._home = HomeProcess()
        self._asked = self._answered = 0
        self._told = False
        self._counter: PlanCounter | None = None
        self._payer: tuple[str, Scope] | None = None
        self._paid: Reservation | None = None
        self._receipt = ""
        # Paying, counting in memory and booking the first receipt take turns. Otherwise two threads
        # could both pay, or both find room for a query that only one of them may ask.
        self._turn = Turn()

    def __getstate__(self) -> dict[str, Any]:
        # A connection to a database is not copied. The ledger finds the count again.
        return self.__dict__ | {"_paid": None, "_counter": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A shallow copy must share neither its home nor its lock with the original.
        self.__dict__.update(state, _home=copy(state["_home"]), _turn=Turn())

    @property
    def used(self) -> bool:
        """Return whether anything was asked or paid for."""
        return self.asked > 0 or self.entry is not None or self._paid is not None

    @property
    def asked(self) -> int:
        """The number of queries asked, by the last reading of the count."""
        return self._asked if self._counter is None else self._counter.asked

    @property
    def answered(self) -> int:
        """The number of answers given out, by the last reading of the count."""
        return self._answered if self._counter is None else self._counter.answered

    @property
    def remaining(self) -> int:
        """The number of queries left, by the last reading of the count, 0 in a fork or a copy."""
        if self._counter is not None:
            return self._counter.remaining
        if not self._home.is_here or self.entry is not None:
            return 0
        return self._left()

    @contextmanager
    def paying(
        self, price: Price, sampler: Sampler, ledger: Books | None, scope: Scopes | None
    ) -> Iterator[Payment]:
        """Count the answers of ``price`` as given, and charge all of the plan the first time.

        Book the receipt of the first answers when the block ends well. The arguments are those of
        ``paid``.

        Raises:
            InvalidInput: another ledger than the one that paid, or none, a ledger after answers
                without one, or several scopes.
            BudgetExceeded: more answers than are left, or a plan that does not fit the budget.
            IncompatibleGuarantees, LedgerUnavailable: the errors of ``Ledger.reserve``.
        """
        if ledger is None or scope is None:
            counter, granted = None, self._take(price.answers)
        else:
            counter, granted = self._book(ledger, one_scope(scope), price.answers)
        payment = Payment(receipt_of(price, sampler, self.entry), granted, self)
        yield payment
        payment.commit()
        self._settle(counter, unused=payment.unused)

    def first_use(self) -> bool:
        """Return whether this is the first call.

        A prepaid plan is one release, whatever number of its answers is taken.
        """
        with self._turn:
            first, self._told = not self._told, True
            return first

    def _left(self) -> int:
        assert self.queries is not None
        assert self.answers is not None
        return self.queries - self._asked if self._answered < self.answers else 0

    def _check(self, queries: int) -> None:
        """Refuse queries that may not be asked here, by memory. The caller has the turn."""
        if not self._home.is_here:
            together = (
                ""
                if self.queries is None
                else ", or book the plan in a ledger first, where all processes count together"
            )
            raise BudgetExceeded(
                f"queries: requested {queries}, 0 left: this is a forked or copied session, and "
                f"its plan is counted where it was fitted; release there{together}"
            )
        if self.queries is not None and queries > self._left():
            raise BudgetExceeded(
                f"queries: requested {queries}, {self._asked} of {self.queries} asked and "
                f"{self._answered} of "
                f"{self.answers} labels given out; at most {self._left()} more may be "
                "asked under this plan"
            )

    def _take(self, queries: int) -> int:
        """Count ``queries`` in memory, and return how many answers they may give out."""
        with self._turn:
            # A charge whose count could not be written is a charge too. Its answers are counted in
            # its ledger or nowhere.
            if self.entry is not None or self._paid is not None:
                raise InvalidInput(
                    "ledger: the answers are paid for in one, which counts them; expected the "
                    "same ledger again"
                )
            self._check(queries)
            granted = queries
            if self.answers is not None:
                granted = min(queries, self.answers - self._answered)
            self._asked += queries
            self._answered += granted
            return granted

    def _book(self, ledger: Books, scope: Scope, queries: int) -> tuple[PlanCounter | None, int]:
        """Charge the plan unless it is charged, and count by the ledger from here on.

        A call that failed can be tried again, and a charge that was made is not made again.
        """
        from reticent.ledger.counters import PlanCounter
        from reticent.ledger.leases import Leases

        books = ledger.ledger if isinstance(ledger, Leases) else ledger
        payer = books.store.name, scope
        with self._turn:
            if self.entry is None or self.queries is None:
                self._check(queries)  # before any charge
                if self.entry is None and self._asked:
                    raise InvalidInput(
                        "ledger: expected the choice of the first release, to book or not, in all "
                        "later ones"
                    )
            if self._payer is not None and not self._same_payer(payer):
                raise _paid_elsewhere()
            if self.entry is None:
                self._pay(books, scope)
        if self.queries is None:
            return None, queries
        counter = PlanCounter.find(books, self._name, scope=scope, event=self.event)
        if counter is None:
            raise _paid_elsewhere()
        granted = counter.take(queries)
        self._counter = counter
        return counter, granted

    def _same_payer(self, payer: tuple[str, Scope]) -> bool:
        """Return whether ``payer`` is the one that paid.

        A ledger with a counter may have another name here, for example in another process. Its
        counter is found by a name that no other plan has.
        """
        assert self._payer is not None
        counted = self.queries is not None and self.entry is not None
        return self._payer[1] == payer[1] and (counted or self._payer[0] == payer[0])

    def _pay(self, ledger: Ledger, scope: Scope) -> None:
        from reticent.ledger.counters import PlanCounter

        if self._paid is None:
            self._paid = reserved_once(ledger, scope, self.event)
            self._payer = ledger.store.name, scope
        paid = self._paid
        if self.queries is not None:
            assert self.answers is not None
            PlanCounter.open(
                ledger,
                self._name,
                scope=scope,
                event=self.event,
                booked=paid.id,
                queries=self.queries,
                answers=self.answers,
            )
        self.entry = Entry(paid.id, paid.position, paid.digest)

    def commit(self, receipt: str) -> None:
        """Note the receipt of the first answers with their charge. Later receipts are not noted.

        Raises:
            LedgerUnavailable: it could not be written. The charge stays.
        """
        with self._turn:
            # The receipt is booked where the charge was made. If a forked child booked its own, its
            # parent could book none.
            if self._paid is not None and self._home.is_here:
                # A commit that failed may have reached the ledger, so the retry has the same name.
                self._receipt = self._receipt or receipt
                self._paid.commit(self._receipt)
                self._paid = None

    def _settle(self, counter: PlanCounter | None, *, unused: int) -> None:
        """Give back answers that were granted and withheld."""
        if unused and counter is not None:
            # If the ledger cannot be written they stay counted. The answers are paid for and
            # booked, so they may leave.
            with suppress(LedgerUnavailable):
                counter.settle(unused=unused)
        elif unused:
            with self._turn:
                self._answered -= unused


def _paid_elsewhere() -> InvalidInput:
    return InvalidInput(
        "ledger: the answers are paid for in another one, or by another scope; expected the "
        "same again"
    )
