"""The price of a request, and one call that draws for many requests at once.

A request is checked and priced once. Once its charge is durable, it is drawn together with others
of its bundle. Bundles answer each row by itself, so what a row gets does not depend on which
requests it came with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reticent.core.releases import Release
from reticent.core.scopes import Scope
from reticent.ledger.charging import Posting, Reservation
from reticent.noise import SecureSampler
from reticent.release.paying import Price, posting_of, receipt_of
from reticent.release.system import together
from reticent.service.catalogue import ServedBundle


@dataclass(frozen=True, eq=False)
class Question:
    """Rows, and the bundle that is asked about them.

    Attributes:
        bundle: the bundle that answers.
        inputs: the rows as the bundle takes them, an array or one with names of columns.
        scope: the scope that is charged, for all rows or for each.
    """

    bundle: ServedBundle
    inputs: Any
    scope: Scope | list[Scope]

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self.inputs)


@dataclass(frozen=True, eq=False)
class Priced:
    """A question that may be asked, and its charge.

    Attributes:
        question: the question.
        inputs: the checked rows.
        price: their cost.
        posting: the charge.
    """

    question: Question
    inputs: Any
    price: Price
    posting: Posting[Any, Reservation]


@dataclass(frozen=True, eq=False)
class Charged:
    """A question whose charge is durable."""

    priced: Priced
    reservation: Reservation


def priced(question: Question) -> Priced:
    """Return the charge of ``question``.

    Raises:
        InvalidInput: the bundle cannot take the rows.
        IncompatibleGuarantees: the cost cannot be booked.
    """
    system = question.bundle.system
    inputs = system.checked(question.inputs)
    price = system.price(inputs)
    return Priced(question, inputs, price, posting_of(price, question.scope))


def drawn(charged: Sequence[Charged]) -> list[Release]:
    """Return one release for each of ``charged``, drawn in one call, each with a receipt of its
    own.

    Args:
        charged: at least one charged question, all of one bundle.

    Raises:
        AssertionError: the bundle answered other rows than were charged, which must not happen.
    """
    sampler = SecureSampler()
    system = charged[0].priced.question.bundle.system
    whole = system.draw(together([one.priced.inputs for one in charged]), sampler)
    if len(whole.withheld) != sum(one.priced.price.answers for one in charged):
        # Rows would go to somebody else: better that nobody gets any.
        raise AssertionError("draw: expected one answer for each row that was charged")
    found, start = [], 0
    for one in charged:
        rows = slice(start, start + one.priced.price.answers)
        receipt = receipt_of(one.priced.price, sampler, one.reservation)
        found.append(Release(whole.values[rows], whole.withheld[rows], receipt, whole.columns))
        start = rows.stop
    return found
