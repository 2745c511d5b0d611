"""Leases: blocks of answers that a process pays for at once, and spends without the database."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count, positive
from reticent.core.errors import BudgetExceeded, InvalidInput
from reticent.core.processes import HomeProcess
from reticent.core.scopes import Scope
from reticent.ledger.charges import charge_of
from reticent.ledger.charging import Booking, Reservation, checked_text

if TYPE_CHECKING:
    from reticent.ledger.ledger import Ledger


class Lease:
    """A block of answers that is charged already, spent by the process that took it.

    **Guarantee.** No more answers are spent than the ledger charged: they are counted by one object
    in one process. A forked child, a copy and an unpickled lease have none. A process that dies
    wastes the rest.

    As a context manager it is closed at the end, and stays open where the block raises.

    Attributes:
        answers: number of answers that were paid for.
        spent: number of them that were given out.
        left: number of them that may still be given out, 0 once the lease is closed, and elsewhere
            than where it was taken.

    Example:
        >>> import tempfile
        >>> from reticent.core import AddRemove, Guarantee
        >>> from reticent.ledger import Ledger
        >>> one = PrivacyEvent("label", Guarantee(0.1, 0.0, AddRemove()))
        >>> with (
        ...     tempfile.TemporaryDirectory() as folder,
        ...     tempfile.TemporaryDirectory() as elsewhere,
        ... ):
        ...     ledger = Ledger.create(f"{folder}/budgets.db", anchor=elsewhere)
        ...     _ = ledger.grant(Scope(subject="ward-7"), Guarantee(100.0, 1e-6, AddRemove()))
        ...     with ledger.lease(Scope("acme", "ward-7"), one, answers=50) as lease:
        ...         for number in range(20):
        ...             lease.reserve(answers=2).commit(f"receipt-{number}")
        ...     lease.spent, ledger.report().budgets[0].spent_epsilon
        ...     ledger.close()
        (40, 5000000)

    References:
        - Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go
          composition", arXiv:1605.08294, a filter may charge answers before they are asked for.

    See Also:
        reticent.ledger.Leases: takes a new one whenever one is used up.
        reticent.ledger.Ledger: ``lease`` makes them.
    """

    def __init__(self, reservation: Reservation, event: PrivacyEvent, *, answers: int) -> None:
        self._paid = reservation
        self._event = event
        self._home = HomeProcess()
        self._turn = threading.Lock()
        self._receipts = hashlib.sha256()
        self._noted = self._pending = 0
        self._closed = False
        self.answers = answers
        self.spent = 0

    @property
    def id(self) -> str:
        """The entry that charged the block, as "1a2b3c4d/7"."""
        return self._paid.id

    @property
    def left(self) -> int:
        """The number of answers that may still be given out here."""
        return 0 if self._closed or not self._home.is_here else self.answers - self.spent

    @property
    def pending(self) -> int:
        """The reservations whose receipt is not there yet."""
        return self._pending

    def reserve(self, *, answers: int) -> Reservation:
        """Spend ``answers`` of the block.

        The reservation's ``commit`` notes the receipt here, and ``close`` books what was noted.

        Raises:
            BudgetExceeded: more than are left. Nothing was spent.
        """
        answers = count(answers, name="answers")
        with self._turn:
            if answers > self.left:
                raise BudgetExceeded(
                    f"answers={answers}: lease {self.id} has {self.left} left of {self.answers}, "
                    "in the process that took it; take another"
                )
            first, last = self.spent + 1, self.spent + answers
            self.spent = last
            self._pending += 1
        return Reservation(
            self._note,
            self._paid.bookings,
            ledger=self.id,
            charge=charge_of(self._event, answers=answers, slack_delta=0.0),
            part=f"#{first}-{last}" if answers > 1 else f"#{first}",
        )

    def close(self) -> None:
        """Book how many answers were spent, and a digest of their receipts in the order they were
        noted.

        Nothing may be spent any more. The rest stays charged.

        Raises:
            LedgerUnavailable: the ledger could not be written. Call it again.
            InvalidInput: this is another process than the one that took the lease.
        """
        if not self._home.is_here:
            raise InvalidInput(f"lease {self.id}: was taken by another process, which closes it")
        with self._turn:
            self._closed = True
            self._paid.commit(
                f"lease: {self.spent} of {self.answers} answers in {self._noted} receipt(s), "
                f"sha256 {self._receipts.hexdigest()}"
            )

    def _note(self, _: Sequence[Booking], receipt: str) -> None:
        with self._turn:
            if self._closed or not self._home.is_here:
                raise InvalidInput(
                    f"lease {self.id}: was closed, or taken by another process, before receipt "
                    f"{receipt!r:.60} was noted; release nothing"
                )
            self._receipts.update(checked_text(receipt, "receipt_id").encode() + b"\n")
            self._noted += 1
            self._pending -= 1

    def __getstate__(self) -> object:
        raise _no_copy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()


class Leases:
    """A ledger for one worker among many, which takes blocks of answers.

    It spends them without the database. Row-wise releases take it in place of a ledger. A request
    is served from a block of its scope and event. Where none has enough left, a new one is charged.
    A block holds a whole number of requests like the one that needed it, so that equal requests
    waste nothing but the last block.

    **Guarantee.** The guarantee of ``Ledger``, since every block is charged before any of its
    answers. A forked child starts without blocks and takes its own.

    Args:
        ledger: the ledger that charges the blocks.
        block: answers in a block, at least 1. What a process has not spent when it ends is lost.
        lifetime: seconds after which a block is given up, above 0. A worker may go on for so long
            after the ledger was put back, or a budget was meant to stop.
        clock: seconds that only grow, for tests.

    Runtime:
        A request from a block takes microseconds, and a block one transaction and its commit
        another (benchmarks/ledger.py).

    References:
        - Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go
          composition", arXiv:1605.08294, a filter may charge answers before they are asked for.

    See Also:
        reticent.ledger.Ledger: charges every request by itself.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        block: int,
        lifetime: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ledger = ledger
        self.block = count(block, name="block")
        self.lifetime = positive(lifetime, name="lifetime")
        self._clock = clock
        self._turn = threading.Lock()
        self._start()

    def reserve(self, scope: Scope, event: PrivacyEvent, *, answers: int) -> Reservation:
        """Reserve as ``Ledger.reserve`` does, from a block.

        More answers than a block holds are charged by themselves.

        Raises:
            InvalidInput, BudgetExceeded, IncompatibleGuarantees, LedgerUnavailable: the errors of
                ``Ledger.reserve``.
        """
        answers = count(answers, name="answers")
        if answers > self.block:
            return self.ledger.reserve(scope, event, answers=answers)
        with self._turn if self._home.is_here else self._fresh():
            lease, until = self._open.get((scope, event), (None, 0.0))
            if lease is None or lease.left < answers or self._clock() >= until:
                most = answers * (self.block // answers)
                taken = self.ledger.lease(scope, event, answers=most, least=answers)
                self._open[scope, event] = (taken, self._clock() + self.lifetime)
                if lease is not None:
                    self._ended.append(lease)
                lease = taken
            reservation = lease.reserve(answers=answers)
            self._settle()
        return reservation

    def reserve_each(self, scopes: Sequence[Scope], event: PrivacyEvent) -> Reservation:
        """Reserve by ``Ledger.reserve_each``: people of their own have no blocks."""
        return self.ledger.reserve_each(scopes, event)

    def close(self) -> None:
        """Book what every block was spent on. Reservations whose receipt is missing stay so.

        Raises:
            LedgerUnavailable: the ledger could not be written. Call it again.
        """
        if not self._home.is_here:
            self._start()
        with self._turn:
            self._ended += [lease for lease, _ in self._open.values()]
            self._open.clear()
            while self._ended:
                self._ended[-1].close()
                self._ended.pop()

    def __getstate__(self) -> object:
        raise _no_copy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self._home = HomeProcess()
        self._open: dict[tuple[Scope, PrivacyEvent], tuple[Lease, float]] = {}
        self._ended: list[Lease] = []

    def _fresh(self) -> threading.Lock:
        """Replace the lock in a forked child, whose parent may have held the old one. It has no
        blocks.
        """
        self._turn = threading.Lock()
        self._start()
        return self._turn

    def _settle(self) -> None:
        """Book the blocks that are used up and whose receipts are all there."""
        waiting = [lease for lease in self._ended if lease.pending]
        for lease in self._ended:
            if not lease.pending:
                lease.close()
        self._ended = waiting


def _no_copy() -> InvalidInput:
    return InvalidInput(
        "lease: cannot be copied or pickled, or its answers would be spent twice; open the ledger "
        "and take one in the process that spends it"
    )
