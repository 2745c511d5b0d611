"""A charge that is durable, and the place to put the receipt of what it paid for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from reticent.core.errors import InvalidInput
from reticent.ledger.charges import Charge
from reticent.ledger.postings import Booking, Page, post_commits

_LONGEST_TEXT = 1000


class Reservation:
    """A charge that is already durable, and the place to put the receipt of what it paid for.

    As a context manager it insists on that receipt: a block that ends without ``commit`` raises, so
    that an answer without a receipt does not leave it. A block that raises, or a process that dies,
    leaves the reservation spent and open.

    Attributes:
        id: goes into the receipt's ``booked``: the ledger's first letters and the entry, as
            "1a2b3c4d/7"; of a charge to several scopes the first and the last of its consecutive
            entries, as "1a2b3c4d/7-9"; of part of a lease the answers that it takes of that entry,
            as "1a2b3c4d/7#13-15".
        position: of the last of these entries in the ledger's chain.
        digest: of that entry, 64 hexadecimal digits; it vouches for everything up to there.
        charge: what was spent, by all its scopes together; of part of a lease, what its answers
            would cost by themselves.
        scopes: how many were charged.

    References:
        - Haber and Stornetta (1991), "How to time-stamp a digital document",
          doi:10.1007/BF00196791, an entry that vouches for all before it.

    See Also:
        reticent.ledger.Ledger: makes them.
        reticent.core.Receipt: carries its name to the client.
    """

    def __init__(
        self,
        book: Callable[[str], None],
        *,
        id: str,
        position: int,
        digest: str,
        charge: Charge,
        scopes: int = 1,
    ) -> None:
        self._book = book
        self._bookings: tuple[Booking, ...] = ()
        self._receipt: str | None = None
        self.id = id
        self.position = position
        self.digest = digest
        self.charge = charge
        self.scopes = scopes

    @classmethod
    def of_bookings(
        cls,
        book: Callable[[Sequence[Booking], str], None],
        bookings: Sequence[Booking],
        name: str,
        charge: Charge,
    ) -> Self:
        """What consecutive entries of the ledger ``name`` have charged; ``book`` posts the receipt
        for all of them.
        """
        entries = tuple(bookings)
        first, last = entries[0].entry.seq, entries[-1].entry.seq
        found = cls(
            partial(book, entries),
            id=f"{name[:8]}/{first}" if first == last else f"{name[:8]}/{first}-{last}",
            position=last,
            digest=entries[-1].digest.hex(),
            charge=charge,
            scopes=len(entries),
        )
        found._bookings = entries
        return found

    @property
    def committed(self) -> bool:
        """Whether a receipt was booked."""
        return self._receipt is not None

    def commit(self, receipt_id: str) -> None:
        """Books the receipt, for every scope that was charged; the answer may leave once this
        returns.

        A commit that failed may be tried again, whether or not it had reached the database; the
        same receipt is booked once.

        Args:
            receipt_id: whatever identifies the receipt, 1 to 1000 printable characters.

        Raises:
            InvalidInput: committed before to another receipt, or not such a text.
            LedgerUnavailable: could not be written; the charge stays and no answer may leave.
        """
        checked_text(receipt_id, "receipt_id")
        if self._receipt is not None and self._receipt != receipt_id:
            raise InvalidInput(
                f"reservation {self.id} is committed already; reserve again for another answer"
            )
        if self._receipt is None:
            self._book(receipt_id)
            self._receipt = receipt_id

    def committing(self, receipt_id: str) -> Callable[[Page], None]:
        """What ``commit`` posts, for a transaction of ``Ledger.post_together``.

        Raises:
            InvalidInput: not such a text, or part of a lease, which is committed as a whole.
        """
        checked_text(receipt_id, "receipt_id")
        if not self._bookings:
            raise InvalidInput(
                f"reservation {self.id}: is part of a lease, whose receipts are noted by commit"
            )
        return lambda page: post_commits(page, self._bookings, receipt=receipt_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._receipt is None:
            raise InvalidInput(
                f"reservation {self.id} ended without commit(receipt_id); its charge stays, "
                "release nothing"
            )


def checked_text(value: str, name: str) -> str:
    """``value``, where a ledger can hold it: 1 to 1000 printable characters.

    Raises:
        InvalidInput: it is something else.
    """
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT or not value.isprintable():
        raise InvalidInput(
            f"{name}: expected 1 to {_LONGEST_TEXT} printable characters, got {value!r:.60}"
        )
    return value
