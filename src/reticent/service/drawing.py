"""What a request would be charged, and one call that draws for many requests at once.

A bundle's ``release`` is asked twice. First for one request, up to the moment at which it charges:
so every check that comes before a charge has passed, and the charge is known. Then, once the
charges are durable, for all that were charged, with a ledger that knows that they are paid. Bundles
answer each row by itself, so what a row gets does not depend on which requests it came with.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any, NoReturn

import numpy as np

from reticent.accounting.events import PrivacyEvent
from reticent.core.releases import Release
from reticent.core.scopes import Scope
from reticent.ledger.charges import Charge
from reticent.ledger.charging import Posting, charge_many, charge_one
from reticent.ledger.ledger import Ledger
from reticent.ledger.postings import Booking
from reticent.ledger.reservations import Reservation
from reticent.ledger.store import Store
from reticent.service.catalogue import ServedBundle
from reticent.tables.frames import NamedRows


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked.

    Attributes:
        bundle: that answers.
        inputs: rows as it takes them, an array or one with names of columns.
        scope: who is charged, for all rows or for each.
    """

    bundle: ServedBundle
    inputs: Any
    scope: Scope | list[Scope]

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.inputs)


@dataclass(frozen=True)
class Cost:
    """What a question is charged.

    Attributes:
        event: of one answer.
        posting: the charge.
    """

    event: PrivacyEvent
    posting: Posting[Any, Reservation]


@dataclass(frozen=True)
class Charged:
    """A question whose charge is durable."""

    question: Question
    cost: Cost
    reservation: Reservation


def cost_of(question: Question, store: Store) -> Cost:
    """What ``question`` is charged, once everything that is checked before a charge is well.

    Raises:
        InvalidInput: rows that the bundle cannot take.
        IncompatibleGuarantees: what cannot be booked.
    """
    try:
        question.bundle.answer(question.inputs, _Asking(store), question.scope)
    except _Ready as ready:
        return ready.cost
    raise AssertionError("release: expected one charge before an answer")


def drawn_with(question: Question) -> Hashable:
    """Questions for which this is equal may be drawn in one call."""
    names = question.inputs.columns if isinstance(question.inputs, NamedRows) else None
    return question.bundle.identity, names, isinstance(question.scope, list)


def drawn(charged: Sequence[Charged], store: Store) -> list[Release]:
    """One release for each of ``charged``, drawn in one call; each with a receipt of its own.

    Args:
        charged: at least one, with the same ``drawn_with``.
        store: of the ledger.
    """
    questions = [one.question for one in charged]
    inputs = _together([question.inputs for question in questions])
    first = questions[0].scope
    scope = first
    if isinstance(first, list):
        scope = [name for question in questions for name in question.scope]  # type: ignore[union-attr]
    whole = questions[0].bundle.answer(inputs, _Paid(store, charged), scope)
    parts, start = [], 0
    for one in charged:
        rows = slice(start, start + one.question.rows)
        receipt = replace(
            whole.receipt,
            answers=one.question.rows,
            booked=one.reservation.id,
            position=one.reservation.position,
            digest=one.reservation.digest,
            identifier=token_hex(8),
        )
        values, withheld = whole.values[rows], whole.withheld[rows]
        parts.append(Release(values, withheld, receipt, whole.columns))
        start = rows.stop
    return parts


def _together(inputs: list[Any]) -> Any:
    if len(inputs) == 1:
        return inputs[0]
    rows = np.concatenate([np.asarray(part) for part in inputs])
    return NamedRows(rows, inputs[0].columns) if isinstance(inputs[0], NamedRows) else rows


class _Ready(Exception):
    """Leaves ``release`` where it charges."""

    def __init__(self, cost: Cost) -> None:
        super().__init__("ready")
        self.cost = cost


class _Asking(Ledger):
    """The ledger as a release sees it whose cost is asked for."""

    def reserve(
        self, scope: Scope, event: PrivacyEvent, *, answers: int, slack_delta: float = 0.0
    ) -> NoReturn:
        """Raises ``_Ready``."""
        posting = charge_one(_later, scope, event, answers=answers, slack_delta=slack_delta)
        raise _Ready(Cost(event, posting))

    def reserve_each(self, scopes: Iterable[Scope], event: PrivacyEvent) -> NoReturn:
        """Raises ``_Ready``."""
        raise _Ready(Cost(event, charge_many(_later, tuple(scopes), event)))


class _Paid(Ledger):
    """The ledger as a release sees it whose rows are charged."""

    def __init__(self, store: Store, charged: Sequence[Charged]) -> None:
        super().__init__(store)
        self._charged = charged

    def reserve(
        self, scope: Scope, event: PrivacyEvent, *, answers: int, slack_delta: float = 0.0
    ) -> Reservation:
        """What stands for the charges, if they are for this."""
        return self._standing(event, answers)

    def reserve_each(self, scopes: Iterable[Scope], event: PrivacyEvent) -> Reservation:
        """What stands for the charges, if they are for this."""
        return self._standing(event, len(tuple(scopes)))

    def _standing(self, event: PrivacyEvent, answers: int) -> Reservation:
        # Neither can differ, unless release depends on something else than it is given.
        if answers != sum(one.question.rows for one in self._charged):
            raise AssertionError("release: asks for other rows than were charged")
        if any(one.cost.event != event for one in self._charged):
            raise AssertionError("release: asks for another cost than was charged")
        total = Charge(
            sum(one.reservation.charge.epsilon for one in self._charged),
            sum(one.reservation.charge.delta for one in self._charged),
            "paid",
        )
        last = self._charged[-1].reservation
        return Reservation(
            lambda receipt: None,
            id=last.id,
            position=last.position,
            digest=last.digest,
            charge=total,
        )


def _later(bookings: Iterable[Booking], receipt: str) -> None:
    """The receipt is booked in the transaction that stores the answer."""
