"""Charge first, then answer: the one place where a fitted query meets a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from contextlib import nullcontext
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from reticent.accounting.events import PrivacyEvent
from reticent.bundles.parallel import answers_in_parallel
from reticent.core.checks import check_jobs
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import Adjacency, Guarantee, Neighborhood
from reticent.core.releases import Receipt, Release
from reticent.core.scopes import Scope
from reticent.ledger.leases import Leases
from reticent.ledger.ledger import Ledger
from reticent.ledger.reservations import Reservation
from reticent.noise import Sampler

Inputs = TypeVar("Inputs", bound=Sized)
AskedInputs = TypeVar("AskedInputs", bound=Sized, contravariant=True)
Scopes = Scope | Sequence[Scope]
"""Where a release is booked: every row under one scope, or each row under its own."""

Books = Ledger | Leases
"""What a release is booked in: charge by charge, or from blocks of answers."""


class Mechanism(Protocol):
    """What a receipt and a ledger need to know of a mechanism."""

    @property
    def name(self) -> str:
        """Name of the mechanism."""

    @property
    def guarantee(self) -> Guarantee:
        """Cost of one answer."""

    @property
    def event(self) -> PrivacyEvent:
        """The same, for accounting."""


class Query(Protocol[AskedInputs]):
    """A fitted query that can answer."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that answers."""

    @property
    def certificate(self) -> str:
        """Kind of the certificate that its guarantee rests on, or "none"."""

    def answer(
        self, inputs: AskedInputs, *, sampler: Sampler
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """One answer for each row of checked ``inputs``, and which of them are withheld."""


def answer_and_book(
    query: Query[Inputs],
    inputs: Inputs,
    *,
    sampler: Sampler,
    bundle: str,
    ledger: Books | None,
    scope: Scopes | None,
    n_jobs: int | None = None,
) -> Release:
    """One answer for each row of checked ``inputs``, charged durably before anything is computed.

    Every row costs one answer, withheld or not. If answering fails after the charge, the charge
    stays.

    Args:
        query: the fitted query.
        inputs: n rows as the query takes them, checked.
        sampler: source of randomness.
        bundle: identity of the bundle that answers.
        ledger, scope: where to book, both or neither; without them the receipt says that nothing
            was booked. A sequence has one scope for each row, whose answer must depend on that row
            only: then all are charged, or none.
        n_jobs: how many workers answer, see ``parallel``; they hold no budget, for all rows are
            charged here.

    Raises:
        InvalidInput: only one of ``ledger`` and ``scope``, another number of scopes than of rows, a
            ledger together with a seeded sampler, or with records of a data set without a name.
        BudgetExceeded, IncompatibleGuarantees, LedgerUnavailable: see ``Ledger.reserve`` and
            ``reserve_each``; nothing is answered.
    """
    check_jobs(n_jobs)
    if (ledger is None) != (scope is None):
        raise InvalidInput("ledger and scope: expected both or neither")
    if ledger is not None and sampler.seeded:
        raise InvalidInput(
            "ledger: seeded answers are not private and cannot be booked; use release without "
            "a seed"
        )
    mechanism = query.mechanism
    if ledger is not None:
        check_bookable(mechanism.guarantee.adjacency)
    with (
        nullcontext(None)
        if ledger is None or scope is None
        else _reserved(ledger, scope, mechanism, len(inputs)) as booked
    ):
        values, withheld = answers_in_parallel(query, inputs, sampler=sampler, n_jobs=n_jobs)
        receipt = Receipt(
            mechanism=mechanism.name,
            guarantee=mechanism.guarantee,
            answers=len(inputs),
            bundle=bundle,
            certificate=query.certificate,
            sampler=sampler.name,
            seeded=sampler.seeded,
            booked="" if booked is None else booked.id,
            position=0 if booked is None else booked.position,
            digest="" if booked is None else booked.digest,
        )
        if booked is not None:
            booked.commit(receipt.identifier)
    return Release(values, withheld, receipt)


def check_bookable(adjacency: Adjacency) -> None:
    """Nothing, if a ledger can know whose budget pays for ``adjacency``.

    Two fits on the same records are two releases of one data set. Without a name a ledger would
    take them for two data sets, each with a budget of its own.

    Raises:
        InvalidInput: it protects records of a data set that its owner has not named.
    """
    if not isinstance(adjacency, Neighborhood) and adjacency.unnamed:
        raise InvalidInput(
            "data_set: expected a name of the protected records, to book their cost under; got "
            "none. Fit again with "
            "data_set='...', the same name whenever the records are the same"
        )


def same_records_again(adjacency: Adjacency) -> str:
    """One phrase for a card: what another fit on the same records costs."""
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


def _reserved(ledger: Books, scope: Scopes, mechanism: Mechanism, rows: int) -> Reservation:
    if isinstance(scope, Scope):
        return ledger.reserve(scope, mechanism.event, answers=rows)
    scopes = tuple(scope) if isinstance(scope, Iterable) and not isinstance(scope, str) else None
    if scopes is None or len(scopes) != rows:
        got = type(scope).__name__ if scopes is None else f"{len(scopes)} of them"
        raise InvalidInput(
            f"scope: expected one Scope, or one for each of the {rows} rows, got {got}"
        )
    return ledger.reserve_each(scopes, mechanism.event)
