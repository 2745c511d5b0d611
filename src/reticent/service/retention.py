"""How long answers are kept: their bodies may go, and the keys of their requests stay.

A repeated request whose answer is gone is refused, and never drawn again. What it was charged
stays charged, and its entries stay in the chain.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from reticent.core.errors import InvalidInput, ReticentError
from reticent.ledger.chain import Page, read_tip
from reticent.ledger.ledger import Ledger
from reticent.ledger.store import Store
from reticent.service import stored
from reticent.service.stored import Values

LEAST = 3600.0
"""Seconds for which an answer is kept at least: a client whose connection broke repeats its request
within minutes."""

_MICROSECONDS = 1_000_000
_UNITS = {"h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_AGE = re.compile(r"([0-9]{1,6})([hdw])")


@dataclass(frozen=True)
class Removal:
    """What ``prune`` removed, or would remove.

    Attributes:
        answers: number of answers.
        size: bytes of their bodies.
    """

    answers: int
    size: int


def age_of(text: str) -> float:
    """Return the seconds in an age such as "12h", "30d" or "8w".

    Raises:
        InvalidInput: the text is no such age.

    Example:
        >>> age_of("30d")
        2592000.0
    """
    found = _AGE.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"older-than={text!r:.40}: expected a whole number and h, d or w, for instance 30d"
        )
    return int(found[1]) * _UNITS[found[2]]


def prune(
    ledger: Ledger,
    *,
    older_than: float,
    dry_run: bool = False,
    clock: Callable[[], float] = time.time,
) -> Removal:
    """Remove the bodies of answers that were charged long ago, while services go on.

    **Guarantee.** No charge, no entry and no key of a request is removed. From then on the same
    request is refused, and the same key for another request as before.

    Args:
        ledger: the ledger that holds them.
        older_than: seconds since the charge, at least an hour.
        dry_run: whether to count, and remove nothing.
        clock: seconds since 1970.

    Raises:
        InvalidInput: ``older_than`` is less than an hour.
        CorruptLedger: a row was changed by other means. See ``reticent ledger verify``.
        LedgerUnavailable: the ledger could not be written, or others read what was removed. What
            was removed before stays removed, and repeating it removes the rest.
    """
    if not older_than >= LEAST:
        raise InvalidInput(
            f"older_than={older_than:g}: expected at least {LEAST:g} seconds, within which clients "
            "repeat requests whose answers they have not got"
        )
    store = ledger.store
    before = int((clock() - older_than) * _MICROSECONDS)
    removed, size = 0, 0
    last = ("", "")
    while True:
        with store.read() as connection:
            names = stored.charged_before(connection, before, behind=last)
            page = Page.of(connection, read_tip(connection))
            rows = [row for name in names if (row := stored.find(page, *name))] if dry_run else []
        if not names:
            break
        if not dry_run:
            (done,) = ledger.post_together([partial(_remove, store, names)])
            if isinstance(done, ReticentError):
                raise done
            rows = done
        removed += len(rows)
        size += sum(len(row["body"]) for row in rows)
        last = names[-1]
    if not dry_run:
        store.checkpoint()
    return Removal(removed, size)


def _remove(store: Store, names: Sequence[tuple[str, str]], page: Page) -> list[Values]:
    """Remove bodies, with one entry that says so, and return their rows."""
    if store.is_sqlite:
        # What is removed is written over, where SQLite would leave it in free pages.
        page.connection.exec_driver_sql("PRAGMA secure_delete = ON")
    found = [row for name in names if (row := stored.find(page, *name))]
    rows = [row for row in found if row["state"] == "answered"]
    for row in rows:
        stored.change(page, row, state="removed", body=None)
    if rows:
        page.note(f"{len(rows)} answer(s) were removed")
    return rows
