"""Answers that are paid for once, as a whole, and counted wherever they are given."""

from __future__ import annotations

from secrets import token_hex
from threading import Lock
from typing import Any

from reticent.accounting.events import PrivacyEvent
from reticent.bundles.booking import check_bookable
from reticent.core.errors import InvalidInput
from reticent.core.scopes import Scope
from reticent.ledger.counters import PlanCounter
from reticent.ledger.ledger import Ledger
from reticent.ledger.reservations import Reservation
from reticent.systems.answer_counts import Count, MemoryCount


class PrepaidAnswers:
    """At most ``answers`` answers at the cost of ``event``, charged before the first of them.

    **Guarantee.** Over all threads, processes and copies at most ``answers`` are taken. Without a
    ledger only the object that was made, in the process where it was, has any: a fork, a copy and
    an unpickled one have none. With a ledger, which counts them, all go on together.

    Args:
        event: what all answers together cost.
        answers: at most, at least 1.

    Attributes:
        booked: the ledger's entry, "" before one.
        place: position and digest of that entry in the ledger's chain.
    """

    def __init__(self, event: PrivacyEvent, *, answers: int) -> None:
        self.event, self.answers = event, answers
        self.booked, self.place = "", (0, "")
        self._name = token_hex(16)
        self._count: Count = MemoryCount(answers, answers)
        self._paid: Reservation | None = None
        self._booking = Lock()  # two threads must not both pay

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_booking"}
        if self.booked:  # a connection to a database is not copied; the ledger finds the count
            kept["_count"] = _spent(self.answers)
        return kept | {"_paid": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _booking=Lock())

    @property
    def remaining(self) -> int:
        """How many are left, as of the last look."""
        return self._count.remaining

    def take(self, answers: int, *, ledger: Ledger | None, scope: Scope | None) -> None:
        """Counts ``answers`` as given, before they are computed; charges them all the first time.

        Raises:
            InvalidInput: only one of ledger and scope, another ledger or none where they are paid
                for, a ledger after answers without one, or a data set without a name.
            BudgetExceeded: more than are left, or they do not fit the budget.
            IncompatibleGuarantees, LedgerUnavailable: as ``Ledger.reserve``.
        """
        if (ledger is None) != (scope is None):
            raise InvalidInput("ledger and scope: expected both or neither")
        if ledger is None or scope is None:
            if self.booked:
                raise InvalidInput(
                    "ledger: the answers are paid for in one, which counts them; expected the "
                    "same ledger again"
                )
        else:
            self._book(ledger, scope, answers)
        self._count.take(answers)

    def commit(self, receipt: str) -> None:
        """Notes the receipt of the first answers with their charge."""
        if self._paid is not None:
            self._paid.commit(receipt)
            self._paid = None

    def _book(self, ledger: Ledger, scope: Scope, answers: int) -> None:
        check_bookable(self.event.guarantee.adjacency)
        if not isinstance(scope, Scope):
            raise InvalidInput(
                f"scope: expected one Scope, got {type(scope).__name__}; the records pay for all "
                "answers"
            )
        with self._booking:
            if not self.booked:
                if self._count.asked:
                    raise InvalidInput(
                        "ledger: expected the choice of the first release, to book or not, in all "
                        "later ones"
                    )
                if answers > self._count.remaining:
                    self._count.take(answers)  # refuses, with the reason, before any charge
                self._pay(ledger, scope)
        counter = PlanCounter.find(ledger, self._name, scope=scope, event=self.event)
        if counter is None:
            raise InvalidInput(
                "ledger: the answers are paid for in another one; expected that one again"
            )
        self._count = counter

    def _pay(self, ledger: Ledger, scope: Scope) -> None:
        if self._paid is None:
            self._paid = ledger.reserve(scope, self.event, answers=1)
        counter = PlanCounter.open(
            ledger,
            self._name,
            scope=scope,
            event=self.event,
            booked=self._paid.id,
            queries=self.answers,
            answers=self.answers,
        )
        self.place = self._paid.position, self._paid.digest
        self.booked = counter.booked


def _spent(answers: int) -> MemoryCount:
    spent = MemoryCount(answers, answers)
    spent.asked = spent.answered = answers
    return spent
