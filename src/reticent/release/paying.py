"""Pay first, then draw: the one place where an answer meets a ledger.

All output goes the same way. ``release`` asks a system to check its inputs and to name their price,
pays, lets the system draw, and books the receipt. A model that is paid for in ``fit`` goes through
``paid`` alone. A service charges many requests in one transaction, through ``posting_of`` and
``receipt_of``. Nothing else in the package calls ``Ledger.reserve``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from reticent.accounting.events import PrivacyEvent
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import Adjacency, Neighborhood
from reticent.core.releases import Receipt
from reticent.core.scopes import Scope
from reticent.noise import Sampler

if TYPE_CHECKING:
    from reticent.ledger.charging import Booking, Posting, Reservation
    from reticent.ledger.leases import Leases
    from reticent.ledger.ledger import Ledger
    from reticent.release.fits import DataUse
    from reticent.release.prepaid import Prepaid

Scopes = Scope | Sequence[Scope]
"""Scopes of a release: one for all rows, or one for each row."""

Books: TypeAlias = "Ledger | Leases"
"""Books of a release: a ledger, which books each charge, or leases of blocks of answers."""


@dataclass(frozen=True, eq=False)
class Price:
    """The cost of a release, known before anything private is read.

    Three kinds of release differ here and nowhere else. An answer that is paid for by itself has
    the event of one answer. A model that is paid for in ``fit`` is one answer. A plan of answers
    is ``prepaid``: its event is that of all of them, charged once.

    Attributes:
        event: the cost of one answer, or of everything if it is prepaid.
        answers: the number of answers asked for, withheld ones included.
        mechanism: the name of the mechanism, for the receipt.
        bundle: the identity of the bundle that answers, or "".
        certificate: the kind of certificate that the guarantee rests on, or "none".
        prepaid: the count of prepaid answers, or None if every answer is paid for by itself.
        use: the fit's use of private records, which counts unbooked releases, or None.
    """

    event: PrivacyEvent
    answers: int
    mechanism: str
    bundle: str = ""
    certificate: str = "none"
    prepaid: Prepaid | None = None
    use: DataUse | None = None


@dataclass(frozen=True, eq=False)
class Drawn:
    """The answers that a system drew for some inputs.

    Attributes:
        values: shape (n, m) for vectors or (n,) for labels, one row for each input.
        withheld: shape (n,), bool.
        columns: the names of the released columns.
    """

    values: npt.NDArray[Any]
    withheld: npt.NDArray[np.bool_]
    columns: tuple[str, ...] = ("label",)


@dataclass(eq=False)
class Payment:
    """A release that is paid for and not drawn yet.

    Attributes:
        receipt: the receipt of this release.
        granted: the number of answers that may be given out.
        charge: the charge with which the receipt is booked, or None.
        unused: the number of granted answers that were withheld.
    """

    receipt: Receipt
    granted: int
    charge: Reservation | Prepaid | None = None
    unused: int = 0

    def commit(self) -> None:
        """Book the receipt if there is a ledger. ``paid`` does so when its block ends well.

        A commit that failed may be tried again. The same receipt is booked once.

        Raises:
            LedgerUnavailable: it could not be written. The charge stays.
        """
        if self.charge is not None:
            self.charge.commit(self.receipt.identifier)

    def kept(self, drawn: Drawn) -> Drawn:
        """Return ``drawn`` with the answers beyond those that were granted withheld.

        The dropped answers follow from the withheld ones before them, so this is post-processing.
        """
        if len(drawn.withheld) <= self.granted:
            self.unused = self.granted - int((~drawn.withheld).sum())
            return drawn
        beyond = (~drawn.withheld).cumsum() > self.granted
        withheld = drawn.withheld | beyond
        self.unused = self.granted - int((~withheld).sum())
        values = drawn.values.copy()
        values[beyond] = None if values.dtype == object else -1
        return replace(drawn, values=values, withheld=withheld)


@contextmanager
def paid(
    price: Price, *, sampler: Sampler, ledger: Books | None, scope: Scopes | None
) -> Iterator[Payment]:
    """Charge ``price`` durably, let the block draw, and book the receipt when it ends well.

    If the block raises, the charge stays and no receipt is booked. Seeded answers are not private,
    so they are neither charged nor counted.

    Args:
        price: the cost of the block's draws.
        sampler: the source of randomness of the block.
        ledger: the ledger or its leases, or None for a receipt that says that nothing was booked.
        scope: the scope that is charged, given with ``ledger`` or not at all. A sequence has one
            scope for each row, whose answer must depend on that row only. All are charged, or none.

    Raises:
        InvalidInput: only one of ``ledger`` and ``scope``, another number of scopes than of rows,
            a ledger together with a seeded sampler, or with records of a data set without a name.
        BudgetExceeded, IncompatibleGuarantees, LedgerUnavailable: the errors of ``Ledger.reserve``
            and ``reserve_each``. Nothing is drawn.
    """
    check_books(price.event.guarantee.adjacency, sampler, ledger, scope)
    if price.prepaid is not None and not sampler.seeded:
        with price.prepaid.paying(price, sampler, ledger, scope) as payment:
            yield payment
            if ledger is None and price.use is not None and price.prepaid.first_use():
                price.use.spent(price.event.guarantee)
    elif ledger is None or scope is None:
        yield Payment(receipt_of(price, sampler, None), price.answers)
        if price.use is not None and not sampler.seeded:
            price.use.spent(price.event.guarantee, answers=price.answers)
    else:
        if isinstance(scope, Scope):
            charge = ledger.reserve(scope, price.event, answers=price.answers)
        else:
            charge = ledger.reserve_each(_scope_of_each(scope, price), price.event)
        payment = Payment(receipt_of(price, sampler, charge), price.answers, charge)
        yield payment
        charge.commit(payment.receipt.identifier)


def receipt_of(
    price: Price, sampler: Sampler, entry: Entry | Reservation | None, *, answers: int | None = None
) -> Receipt:
    """Return the receipt of a release.

    Args:
        price: the cost that was charged.
        sampler: the source of randomness.
        entry: the entry of the ledger that charged it, or None.
        answers: the number of answers if the price was that of several requests together.
    """
    return Receipt(
        mechanism=price.mechanism,
        guarantee=price.event.guarantee,
        answers=price.answers if answers is None else answers,
        bundle=price.bundle,
        certificate=price.certificate,
        sampler=sampler.name,
        seeded=sampler.seeded,
        booked="" if entry is None else entry.id,
        position=0 if entry is None else entry.position,
        digest="" if entry is None else entry.digest,
        together=price.prepaid is not None,
    )


@dataclass(frozen=True)
class Entry:
    """The place of a charge in its ledger, as a ``Reservation`` has it."""

    id: str
    position: int
    digest: str


def posting_of(price: Price, scope: Scopes) -> Posting[Any, Reservation]:
    """Return the charge of ``price`` as a posting that can share a transaction with others.

    The caller that posts it also books the receipt, by ``Reservation.committing``.

    Raises:
        InvalidInput: another number of scopes than of rows, records of a data set without a name,
            or answers that are paid for as a whole.
        IncompatibleGuarantees: a cost that cannot be booked.
    """
    if price.prepaid is not None:
        raise InvalidInput("price: expected that of answers by themselves, got one as a whole")
    check_bookable(price.event.guarantee.adjacency)
    # What has a posting has a ledger; a release without one need not load a database's package.
    from reticent.ledger.charging import charge_many, charge_one

    if isinstance(scope, Scope):
        return charge_one(_elsewhere, scope, price.event, answers=price.answers, slack_delta=0.0)
    return charge_many(_elsewhere, _scope_of_each(scope, price), price.event)


def check_books(
    adjacency: Adjacency, sampler: Sampler, ledger: Books | None, scope: Scopes | None
) -> None:
    """Refuse books that cannot take the cost of a release.

    Raises:
        InvalidInput: an error of ``paid`` about its books.
    """
    check_both_or_neither(ledger, scope)
    if ledger is None:
        return
    if sampler.seeded:
        raise InvalidInput(
            "ledger: seeded answers are not private and cannot be booked; use release without "
            "a seed"
        )
    check_bookable(adjacency)


def check_both_or_neither(ledger: Books | None, scope: Scopes | None) -> None:
    """Refuse a ledger without a scope, or a scope without a ledger.

    Raises:
        InvalidInput: only one of them is given.
    """
    if (ledger is None) != (scope is None):
        raise InvalidInput("ledger and scope: expected both or neither")


def check_bookable(adjacency: Adjacency) -> None:
    """Refuse an adjacency for which no ledger can know whose budget pays.

    Two fits on the same records are two releases of one data set. Without a name a ledger would
    take them for two data sets, each with a budget of its own.

    Raises:
        InvalidInput: the adjacency protects records of a data set that its owner has not named.
    """
    if not isinstance(adjacency, Neighborhood) and adjacency.unnamed:
        raise InvalidInput(
            "data_set: expected a name of the protected records, to book their cost under; got "
            "none. Fit again with "
            "data_set='...', the same name whenever the records are the same"
        )


def one_scope(scope: Scopes) -> Scope:
    """Return ``scope`` if it is a single one, since the records pay for everything together.

    Raises:
        InvalidInput: several scopes, or something else.
    """
    if not isinstance(scope, Scope):
        raise InvalidInput(
            f"scope: expected one Scope, got {type(scope).__name__}; the records pay for "
            "everything together"
        )
    return scope


def checked_scopes(scope: Any, rows: int) -> tuple[Scope, ...]:
    """Return one scope for each row.

    Raises:
        InvalidInput: another number of scopes than of rows, or not a sequence.
    """
    scopes = tuple(scope) if isinstance(scope, Iterable) and not isinstance(scope, str) else None
    if scopes is None or len(scopes) != rows:
        got = type(scope).__name__ if scopes is None else f"{len(scopes)} of them"
        raise InvalidInput(
            f"scope: expected one Scope, or one for each of the {rows} rows, got {got}"
        )
    return scopes


def same_records_again(adjacency: Adjacency) -> str:
    """Return a card's phrase on the cost of another fit on the same records."""
    if isinstance(adjacency, Neighborhood):
        raise InvalidInput(f"adjacency: expected one of data sets, got {adjacency.describe()}")
    if adjacency.unnamed:
        return (
            "another fit on the same records, which is another release of them: the costs add "
            "up, and no ledger can count them, "
            "since the data set has no name"
        )
    return (
        "another fit on the same records, which is another release of them: the costs add up; "
        "a ledger charges both to the data "
        f"set {adjacency.data_set!r}, if both fits name it so"
    )


def reserved_once(ledger: Books, scope: Scope, event: PrivacyEvent) -> Reservation:
    """Charge ``event`` once, for all answers that it covers."""
    return ledger.reserve(scope, event, answers=1)


def _scope_of_each(scope: Scopes, price: Price) -> tuple[Scope, ...]:
    adjacency = price.event.guarantee.adjacency
    if not isinstance(adjacency, Neighborhood) and adjacency.data_set:
        one_scope(scope)  # refuses: the records pay for every answer, not its row's subject
    return checked_scopes(scope, price.answers)


def _elsewhere(bookings: Iterable[Booking], receipt: str) -> None:
    """Raise: the receipt is booked in the transaction that stores the answer."""
    raise AssertionError("commit: expected committing, in a transaction of the caller's")
