"""Verification of the ledger while it is served: at the start, and every hour."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from threading import Event, Thread

from reticent.core.errors import CorruptLedger, LedgerUnavailable
from reticent.ledger.ledger import Ledger
from reticent.service.logs import say

HOUR = 3600.0
"""Seconds from the end of one verification to the next."""

_CHILD = "from reticent.service.watch import verify_named; verify_named()"
_LEAST_URGENT = 19


class Watch:
    """Verify a ledger now and again, in a process of its own that gives way to answers.

    A charge checks the rows that it reads. This finds what no charge reads: entries, answers and
    keys that were changed by other means. From then on nothing is charged until the service is
    started again. It starts only on a ledger without problems.

    Attributes:
        found: number of problems that the last verification found.

    Args:
        ledger: the ledger, verified before this returns.
        url: the ledger's URL, for the other process.
        every: seconds between verifications.

    Raises:
        CorruptLedger: the ledger does not match its own entries.
    """

    def __init__(self, ledger: Ledger, url: str, *, every: float = HOUR) -> None:
        self._name, self._url, self._every = ledger.store.name, url, every
        self._stopped = Event()
        self.found = len(ledger.verify().problems)
        self.check()
        self._thread = Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Refuse to charge a ledger that was found to be corrupt.

        Raises:
            CorruptLedger: a verification found it corrupt.
        """
        if self.found:
            raise CorruptLedger(
                f"{self._name}: {self.found} thing(s) do not match its entries; nothing is "
                "released. `reticent ledger verify` names them"
            )

    def close(self) -> None:
        """Begin no further verification. One under way ends by itself."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            found = _verified(self._url)
            if found is None:
                say("ledger could not be verified", level=logging.ERROR)
                continue
            self.found = found
            if found:
                say("ledger is corrupt", level=logging.ERROR, problems=found)


def _verified(url: str) -> int | None:
    """Return the number of problems that another process finds, or None where it could not look."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=url.encode(),  # a command line would show a password to every user of the machine
        capture_output=True,
        check=False,
    )
    return int(json.loads(done.stdout)) if done.returncode == 0 else None


def verify_named() -> None:
    """Print the number of problems of the ledger whose URL is read from standard input."""
    os.nice(_LEAST_URGENT)
    url = sys.stdin.read()
    try:
        ledger = Ledger.open(url)
        found = len(ledger.verify().problems)
        ledger.close()
    except CorruptLedger:
        found = 1
    except LedgerUnavailable as error:
        raise SystemExit(2) from error
    print(json.dumps(found))
