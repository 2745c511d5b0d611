"""Writes to the ledger from many requests at once: one transaction, and one wait for the disk, for
all that wait together.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from reticent.core.errors import LedgerUnavailable, ReticentError
from reticent.ledger.ledger import Ledger
from reticent.ledger.postings import Page

T = TypeVar("T")

_TOGETHER = 64
"""Works in one transaction at most; others of other processes wait meanwhile."""


class GroupWriter:
    """A thread that posts what other threads hand to it.

    What waits while one transaction is written goes into the next. A work that refuses has no
    effect on others; a transaction that fails fails for all that were in it.

    Args:
        ledger: where to post.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: SimpleQueue[tuple[Callable[[Page], Any], Future[Any]] | None] = SimpleQueue()
        self._closed = False
        self._thread = Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    def post(self, work: Callable[[Page], T]) -> T:
        """What ``work`` returns, once what it wrote is durable.

        Raises:
            ReticentError: what it raised; nothing of it was written.
            LedgerUnavailable: could not be written.
        """
        if self._closed:
            raise LedgerUnavailable("the service is stopping; nothing is released")
        done: Future[T] = Future()
        self._waiting.put((work, done))
        return done.result()

    def close(self) -> None:
        """Waits until everything that was handed over is written."""
        self._closed = True
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        open_ = True
        while open_:
            first = self._waiting.get()
            group = [] if first is None else [first]
            open_ = first is not None
            while open_ and len(group) < _TOGETHER:
                try:
                    more = self._waiting.get_nowait()
                except Empty:
                    break
                open_ = more is not None
                if more is not None:
                    group.append(more)
            if group:
                self._write(group)

    def _write(self, group: list[tuple[Callable[[Page], Any], Future[Any]]]) -> None:
        try:
            outcomes = self._ledger.post_together([work for work, _ in group])
        except BaseException as error:  # whoever waits must hear of it, whatever it is
            for _, done in group:
                done.set_exception(error)
            return
        for (_, done), outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, ReticentError):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)
