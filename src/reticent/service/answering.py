"""One request, one charge, one draw: reserve, draw, store with the commit, and only then send.

A row of ``service_answers`` is made in the transaction that charges, under the principal and its
idempotency key, and filled in the transaction that commits. Whatever happens in between, a request
that is repeated finds that row: the stored bytes, "under way", or "lost" once its time is up.
Nothing is ever drawn twice. Which of them holds is decided in the database alone, so that several
processes and hosts agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Semaphore
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from reticent.accounting.events import PrivacyEvent
from reticent.core.errors import (
    AnswerLost,
    InvalidInput,
    LedgerUnavailable,
    RequestUnderWay,
    UnknownName,
)
from reticent.core.scopes import Scope
from reticent.ledger.charging import Posting, charge_many, charge_one
from reticent.ledger.ledger import Ledger
from reticent.ledger.postings import Booking, Page
from reticent.ledger.prepared import Prepared
from reticent.ledger.reservations import Reservation
from reticent.ledger.schema import service_answers
from reticent.service.bodies import answer_body, receipt_of
from reticent.service.catalogue import ServedBundle
from reticent.service.keys import ApiKey, KeyStore
from reticent.service.retention import is_removed
from reticent.service.signing import Signer
from reticent.service.writer import GroupWriter

_MICROSECONDS = 1_000_000
_TRIES = 3
"""Times that an answer is stored, where the ledger cannot be written for a moment."""


@dataclass(frozen=True)
class Request:
    """What names a request, and what it must be again.

    Attributes:
        key: who asks.
        idempotency_key: the client's name for it.
        digest: keyed digest of what is asked, 32 bytes.
    """

    key: ApiKey
    idempotency_key: str
    digest: bytes

    @property
    def names(self) -> dict[str, str]:
        """The primary key of its row."""
        return {"who": self.key.principal, "which": self.idempotency_key}


@dataclass(frozen=True)
class Answer:
    """A body, and whether it was sent before."""

    body: bytes
    repeated: bool


@dataclass(frozen=True)
class _Row:
    """What is stored of a request."""

    request: bytes
    state: str
    due: int
    receipt: str | None
    body: bytes


class _Repeated(Exception):
    """The request was charged before; leaves ``release`` before anything is drawn."""

    def __init__(self, row: _Row) -> None:
        super().__init__("repeated")
        self.row = row


class Answering:
    """Answers requests, each of them once.

    **Guarantee.** Over all threads, processes and hosts on one ledger: every body that leaves was
    drawn once, after its charge was durable, and stored with the commit of its receipt. The same
    request gets the same bytes, for good.

    Args:
        ledger: where to charge.
        keys: who may ask; looked at again in the transaction that charges.
        signer: of receipts.
        writer: to the ledger.
        lease: seconds after which a charged request without an answer is lost.
        clock: seconds since 1970; hosts of one ledger agree within a fraction of the lease.
    """

    def __init__(
        self,
        ledger: Ledger,
        keys: KeyStore,
        signer: Signer,
        writer: GroupWriter,
        *,
        lease: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger, self._keys, self._signer = ledger, keys, signer
        self._writer, self._lease, self._clock = writer, lease, clock
        # Python runs one thread at a time: without taking turns a server that is busy with rows
        # would be slow to refuse the next request.
        self._turn = Semaphore(1)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """While its block runs, no other request computes; waiting for the ledger gives it up."""
        with self._turn:
            yield

    def answer(
        self,
        request: Request,
        bundle: ServedBundle,
        inputs: Any,
        scope: Scope | list[Scope],
    ) -> Answer:
        """One answer for each row, charged durably before it is drawn, or what the same request
        got before; the caller has the turn.

        Raises:
            InvalidInput: rows that the bundle cannot take, or an idempotency key that stands for
                another request; nothing was charged.
            BudgetExceeded, IncompatibleGuarantees, NotAuthenticated: nothing was charged.
            RequestUnderWay: it is being answered.
            AnswerLost: it was charged and will not be answered, or its answer was removed.
            LedgerUnavailable: the ledger could not be written; repeat the request.
        """
        charge = _ChargeOnce(self, request)
        try:
            release = bundle.answer(inputs, charge, scope)
        except _Repeated as repeated:
            return self._again(request, repeated.row)
        reservation = charge.reservation
        assert reservation is not None
        receipt = release.receipt
        stated = receipt.to_dict()
        body = answer_body(
            release,
            bundle.identity,
            bundle.widest(release.values),
            receipt=stated,
            signature=self._signer.receipt(stated),
        )

        def store(page: Page) -> None:
            filled = _ANSWERED.run(
                page.connection, {**request.names, "name": receipt.identifier, "bytes": body}
            )
            if not filled:
                self._check_stored(page.connection, request, receipt.identifier)
            reservation.committing(receipt.identifier)(page)

        self._stored(store)
        return Answer(body, repeated=False)

    def receipt(self, principal: str, identifier: str) -> dict[str, Any]:
        """The signed receipt of an answer that ``principal`` got.

        Raises:
            UnknownName: there is none.
            AnswerLost: it was removed.
            LedgerUnavailable: cannot be read.
        """
        query = sa.select(service_answers.c.body).where(
            service_answers.c.principal == principal, service_answers.c.receipt == identifier
        )
        with self._ledger.store.read() as connection:
            body = connection.execute(query).scalar()
            removed = body is None and is_removed(connection, principal, identifier)
        if removed:
            raise _removed()
        if body is None:
            raise UnknownName("receipt: expected the identifier of a receipt of this client")
        return receipt_of(bytes(body))

    def waited(self, work: Callable[[Page], Any]) -> Any:
        """What the writer makes of ``work``, while others have their turn."""
        self._turn.release()
        try:
            return self._writer.post(work)
        finally:
            self._turn.acquire()

    def charged(self, request: Request, posting: Posting[Any, Reservation]) -> Reservation:
        """A charge, and the row of its request, in one transaction.

        Raises:
            _Repeated: it was charged before.
        """

        def work(page: Page) -> Any:
            self._keys.check(page.connection, request.key)
            row = _find(page.connection, request)
            if row is not None:
                return row
            done = posting.work(page)
            if isinstance(done, Reservation):
                now = self._clock()
                values = {
                    "principal": request.key.principal,
                    "idempotency_key": request.idempotency_key,
                    "request": request.digest,
                    "state": "charged",
                    "charged_at": int(now * _MICROSECONDS),
                    "due": int((now + self._lease) * _MICROSECONDS),
                    "booked": done.id,
                }
                _CHARGED.run(page.connection, values)
            return done

        done = self.waited(work)
        if isinstance(done, _Row):
            raise _Repeated(done)
        return posting.result(done)

    def _stored(self, store: Callable[[Page], None]) -> None:
        for left in reversed(range(_TRIES)):
            try:
                self.waited(store)
            except LedgerUnavailable:
                if not left:
                    raise
                time.sleep(0.1)
            else:
                return

    def _check_stored(self, connection: Connection, request: Request, receipt: str) -> None:
        """Refuses a request that was given up in the meantime; one whose answer was stored by a try
        that seemed to have failed is well.
        """
        row = _find(connection, request)
        if row is None or row.receipt != receipt:
            raise _lost()

    def _again(self, request: Request, row: _Row) -> Answer:
        if row.request != request.digest:
            raise InvalidInput(
                "Idempotency-Key: stands for another request of this client; repeat that one, or "
                "choose a new key"
            )
        if row.state == "answered":
            return Answer(row.body, repeated=True)
        if row.state == "charged" and self._clock() * _MICROSECONDS < row.due:
            raise RequestUnderWay(
                "this request is charged and being answered; repeat it a little later, with the "
                "same key"
            )
        if row.state == "charged":
            found = self._writer.post(lambda page: _give_up(page, request))
            if found.state == "answered":
                return Answer(found.body, repeated=True)
        if row.state == "removed":
            raise _removed()
        raise _lost()


class _ChargeOnce(Ledger):
    """The ledger as one request sees it: its first charge makes the request's row, and its commit
    waits for the answer.
    """

    def __init__(self, answering: Answering, request: Request) -> None:
        super().__init__(answering._ledger.store)
        self._answering, self._request = answering, request
        self.reservation: Reservation | None = None

    def reserve(
        self, scope: Scope, event: PrivacyEvent, *, answers: int, slack_delta: float = 0.0
    ) -> Reservation:
        """See ``Ledger.reserve``; raises ``_Repeated`` for a request that was charged before."""
        return self._charged(
            charge_one(_later, scope, event, answers=answers, slack_delta=slack_delta)
        )

    def reserve_each(self, scopes: Iterable[Scope], event: PrivacyEvent) -> Reservation:
        """See ``Ledger.reserve_each``; raises ``_Repeated`` as ``reserve`` does."""
        return self._charged(charge_many(_later, tuple(scopes), event))

    def _charged(self, posting: Posting[Any, Reservation]) -> Reservation:
        assert self.reservation is None  # one request is one charge
        self.reservation = self._answering.charged(self._request, posting)
        return self.reservation


def _later(bookings: Iterable[Booking], receipt: str) -> None:
    """The receipt is booked in the transaction that stores the answer."""


def _lost() -> AnswerLost:
    return AnswerLost(
        "this request was charged, and its server stopped before it had stored an answer; what "
        "was charged stays spent, and nothing is drawn again. Ask anew with another key"
    )


def _removed() -> AnswerLost:
    return AnswerLost(
        "this request was answered, and the answer was removed since; what was charged stays "
        "spent, and nothing is drawn again. Ask anew with another key"
    )


def _find(connection: Connection, request: Request) -> _Row | None:
    row = _ROW.first(connection, request.names)
    if row is None:
        return None
    body = b"" if row.body is None else bytes(row.body)
    return _Row(bytes(row.request), row.state, row.due, row.receipt, body)


def _give_up(page: Page, request: Request) -> _Row:
    """Marks a request as lost, unless it was answered in the meantime; its row as it is then."""
    _LOST.run(page.connection, request.names)
    row = _find(page.connection, request)
    assert row is not None  # rows are never removed
    return row


_HERE = (
    service_answers.c.principal == sa.bindparam("who"),
    service_answers.c.idempotency_key == sa.bindparam("which"),
)
_CHARGED = Prepared(
    service_answers.insert(),
    columns=("principal", "idempotency_key", "request", "state", "charged_at", "due", "booked"),
)
_ROW = Prepared(
    sa.select(
        *(service_answers.c[name] for name in ("request", "state", "due", "receipt", "body"))
    ).where(*_HERE)
)
_ANSWERED = Prepared(
    service_answers.update()
    .where(*_HERE, service_answers.c.state == "charged")
    .values(state="answered", receipt=sa.bindparam("name"), body=sa.bindparam("bytes"))
)
_LOST = Prepared(
    service_answers.update()
    .where(*_HERE, service_answers.c.state == "charged")
    .values(state="lost")
)
