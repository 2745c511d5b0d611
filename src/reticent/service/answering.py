"""One request, one charge, one draw: reserve, draw, store with the commit, and only then send.

Requests that wait at the same time are charged in one transaction, each by itself. Those of one
bundle are drawn in one call. Each of them costs and gets the same as if it had come alone.

The transaction that charges makes a row of ``service_answers`` under the principal and its
idempotency key. The transaction that commits fills it. A repeated request finds that row, whatever
happened in between: the stored bytes, "under way", or "lost" once its time is up. The database
alone decides which of them holds, so several processes and hosts agree.

Both survive a power cut, and the anchor names the charge before anything is drawn. If it named
both only at the end, a ledger that is put back and accepted in between would let an answer out that
nobody paid for: ``tests/service/test_simulation.py`` has such schedules.

Each row is an item of the ledger's tree, under the entry that charges and then under the one that
commits. If a row was changed, added or removed by other means, a request for it is refused. The
answer is neither sent nor drawn again.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from reticent.core.errors import (
    AnswerLost,
    InvalidInput,
    LedgerUnavailable,
    RequestUnderWay,
    ReticentError,
    UnknownName,
)
from reticent.ledger.chain import Page, read_tip
from reticent.ledger.charging import Reservation
from reticent.ledger.ledger import Ledger
from reticent.service import stored
from reticent.service.bodies import answer_body, receipt_of
from reticent.service.drawing import Charged, Priced, Question, drawn, priced
from reticent.service.keys import ApiKey, KeyStore
from reticent.service.signing import Signer
from reticent.service.stored import Values

_MICROSECONDS = 1_000_000
_TRIES = 3
"""Times that an answer is stored, where the ledger cannot be written for a moment."""


@dataclass(frozen=True)
class Request:
    """The name of a request, and the digests that a repetition must match.

    Attributes:
        key: the key of whoever asks.
        idempotency_key: the client's name for the request.
        digest: keyed digest of what is asked, 32 bytes.
        bound: digest of the request under the client's nonce, for its receipt (``core.bindings``).
    """

    key: ApiKey
    idempotency_key: str
    digest: bytes
    bound: str


@dataclass(frozen=True)
class Asked:
    """A request, and its ``Question``."""

    request: Request
    question: Question


@dataclass(frozen=True)
class Answer:
    """A body, whether it was sent before, and its number of rows."""

    body: bytes
    repeated: bool
    rows: int


class Answering:
    """Answer requests, each of them once.

    **Guarantee.** Over all threads, processes and hosts on one ledger: every body that leaves was
    drawn once, after its charge was durable, and stored with the commit of its receipt. The same
    request gets the same bytes, for good.

    Args:
        ledger: the ledger that is charged.
        keys: keys of those who may ask. The transaction that charges looks at them again.
        signer: the signer of receipts.
        lease: seconds after which a charged request without an answer is lost.
        clock: seconds since 1970. Hosts of one ledger agree within a fraction of the lease.

    Attributes:
        turn: lock of whoever computes.
    """

    def __init__(
        self,
        ledger: Ledger,
        keys: KeyStore,
        signer: Signer,
        *,
        lease: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger, self._keys, self._signer = ledger, keys, signer
        self._lease, self._clock = lease, clock
        self._writing = Lock()  # SQLite itself would look again every millisecond
        # Python runs one thread at a time: without taking turns a server that is busy with rows
        # would be slow to refuse the next request. A wait for the ledger gives the turn up.
        self.turn = Lock()

    def answer(self, asked: Sequence[Asked]) -> list[Answer | Exception]:
        """Return what each of the requests gets, in their order. The caller has the turn.

        An answer has one row for each row that was asked about, charged durably before it is
        drawn. A repeated request gets its first answer. A request that is refused harms no other.
        A fault after the charge cannot depend on a row, and fails all that are drawn together.

        Returns:
            For each request an ``Answer``, or one of these errors.

            - InvalidInput: the bundle cannot take the rows, or the idempotency key stands for
              another request. Nothing was charged.
            - BudgetExceeded, IncompatibleGuarantees, NotAuthenticated: nothing was charged.
            - RequestUnderWay: it is being answered.
            - AnswerLost: it was charged and will not be answered, or its answer was removed.
            - LedgerUnavailable: the ledger could not be written. Repeat the request.
            - Others: a fault of the service.
        """
        found: list[Answer | Exception | None] = [None] * len(asked)
        costs: dict[int, Priced] = {}
        for place, one in enumerate(asked):
            try:
                costs[place] = priced(one.question)
            except Exception as error:  # of this request, whatever it is
                found[place] = error
        charged: dict[int, Charged] = {}
        for place, done in self._charged({place: (asked[place], costs[place]) for place in costs}):
            if isinstance(done, Charged):
                charged[place] = done
            else:
                found[place] = done
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for place in charged:
            groups[asked[place].question.bundle.identity].append(place)
        written: dict[int, tuple[bytes, str]] = {}
        for places in groups.values():
            try:
                written |= self._drawn(
                    {place: (asked[place].request, charged[place]) for place in places}
                )
            except Exception as error:  # what was charged stays spent
                found = [error if place in places else old for place, old in enumerate(found)]
        for place, kept in self._stored(asked, charged, written):
            found[place] = kept
        assert None not in found
        return [one for one in found if one is not None]

    def receipt(self, principal: str, identifier: str) -> dict[str, Any]:
        """Return the signed receipt of an answer that ``principal`` got.

        Raises:
            UnknownName: there is none.
            AnswerLost: the answer was removed.
            LedgerUnavailable: the ledger cannot be read.
            CorruptLedger: the row of its answer was changed by other means.
        """
        with self._ledger.store.read() as connection:
            page = Page.of(connection, read_tip(connection))
            found = stored.of_receipt(page, principal, identifier)
        if found is None:
            raise UnknownName("receipt: expected the identifier of a receipt of this client")
        if found["state"] == "removed":
            raise _removed()
        return receipt_of(bytes(found["body"]))

    def waited(
        self, works: Sequence[Callable[[Page], Any]], *, keep: bool
    ) -> list[Any | ReticentError]:
        """Return what ``Ledger.post_together`` does, while others have their turn."""
        self.turn.release()
        try:
            with self._writing:
                return self._ledger.post_together(works, keep=keep)
        finally:
            self.turn.acquire()

    def _charged(
        self, wanted: dict[int, tuple[Asked, Priced]]
    ) -> Iterator[tuple[int, Charged | Answer | Exception]]:
        """Yield each request's charge, or what it gets without one."""
        if not wanted:
            return
        try:
            outcomes = self.waited(
                [self._charging(asked.request, cost) for asked, cost in wanted.values()],
                keep=True,
            )
        except Exception as error:  # the transaction did not take place, or nobody knows
            yield from ((place, error) for place in wanted)
            return
        for (place, (asked, cost)), done in zip(wanted.items(), outcomes, strict=True):
            try:
                if isinstance(done, ReticentError):
                    yield place, done
                elif isinstance(done, dict):
                    yield place, self._again(asked, done)
                else:
                    yield place, Charged(cost, cost.posting.result(done))
            except ReticentError as error:
                yield place, error

    def _charging(self, request: Request, cost: Priced) -> Callable[[Page], Any]:
        """Return the work that charges and adds the request's row, or finds the row that is
        there.
        """

        def work(page: Page) -> Any:
            self._keys.check(page, request.key)
            row = _find(page, request)
            if row is not None:
                return row

            def along(booked: str) -> None:
                now = self._clock()
                row = {
                    "principal": request.key.principal,
                    "idempotency_key": request.idempotency_key,
                    "request": request.digest,
                    "state": "charged",
                    "charged_at": int(now * _MICROSECONDS),
                    "due": int((now + self._lease) * _MICROSECONDS),
                    "booked": booked,
                    "receipt": None,
                    "body": None,
                }
                stored.add(page, row)

            return cost.posting.work(page, along)

        return work

    def _drawn(self, wanted: dict[int, tuple[Request, Charged]]) -> dict[int, tuple[bytes, str]]:
        """Return the body of each answer, and the name of its receipt."""
        written = {}
        releases = drawn([charged for _, charged in wanted.values()])
        for place, release in zip(wanted, releases, strict=True):
            request, charged = wanted[place]
            bundle = charged.priced.question.bundle
            body = answer_body(
                release,
                bundle.identity,
                bundle.widest(release.values),
                request=request.bound,
                signed=self._signer.receipt,
            )
            written[place] = body, release.receipt.identifier
        return written

    def _stored(
        self,
        asked: Sequence[Asked],
        charged: dict[int, Charged],
        written: dict[int, tuple[bytes, str]],
    ) -> Iterator[tuple[int, Answer | Exception]]:
        """Yield each answer, once it is stored with the commit of its charge."""
        if not written:
            return
        works = [
            self._storing(asked[place].request, charged[place].reservation, body, receipt)
            for place, (body, receipt) in written.items()
        ]
        try:
            outcomes = self._tried(works)
        except Exception as error:  # not stored, or nobody knows
            yield from ((place, error) for place in written)
            return
        for (place, (body, _)), outcome in zip(written.items(), outcomes, strict=True):
            if isinstance(outcome, ReticentError):
                yield place, outcome
            else:
                yield place, Answer(body, repeated=False, rows=asked[place].question.rows)

    def _storing(
        self, request: Request, reservation: Reservation, body: bytes, receipt: str
    ) -> Callable[[Page], None]:
        def work(page: Page) -> None:
            row = _find(page, request)
            if row is None or (row["state"] != "charged" and row["receipt"] != receipt):
                raise _lost()  # it was given up in the meantime
            if row["state"] == "charged":
                stored.change(page, row, state="answered", receipt=receipt, body=body)
            reservation.committing(receipt)(page)  # again where a try had seemed to fail

        return work

    def _tried(self, works: Sequence[Callable[[Page], None]]) -> list[ReticentError | None]:
        for left in reversed(range(_TRIES)):
            try:
                return self.waited(works, keep=False)
            except LedgerUnavailable:
                if not left:
                    raise
                time.sleep(0.1)
        raise AssertionError("not reached")

    def _again(self, asked: Asked, row: Values) -> Answer:
        request, rows = asked.request, asked.question.rows
        if bytes(row["request"]) != request.digest:
            raise InvalidInput(
                "Idempotency-Key: stands for another request of this client; repeat that one, or "
                "choose a new key"
            )
        if row["state"] == "charged":
            if self._clock() * _MICROSECONDS < row["due"]:
                raise RequestUnderWay(
                    "this request is charged and being answered; repeat it a little later, with "
                    "the same key"
                )
            (done,) = self.waited([partial(_give_up, request=request)], keep=True)
            if isinstance(done, ReticentError):
                raise done
            row = done
        if row["state"] == "answered":
            return Answer(bytes(row["body"]), repeated=True, rows=rows)
        if row["state"] == "removed":
            raise _removed()
        raise _lost()


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


def _find(page: Page, request: Request) -> Values | None:
    return stored.find(page, request.key.principal, request.idempotency_key)


def _give_up(page: Page, request: Request) -> Values:
    """Mark a request as lost unless it was answered in the meantime, and return its row.

    Raises:
        AnswerLost: there is no row, since the ledger has gone back in time.
    """
    row = _find(page, request)
    if row is None:
        raise _lost()
    if row["state"] == "charged":
        row = stored.change(page, row, state="lost")
        page.note(f"answer of {row['booked']} was lost")
    return row
