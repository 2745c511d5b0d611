"""Writes to the ledger from many requests at once.

All that wait together share one transaction and one wait for the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from reticent.core.errors import LedgerUnavailable, ReticentError
from reticent.ledger.chain import Page
from reticent.ledger.ledger import Ledger

T = TypeVar("T")

_TOGETHER = 64
"""Works in one transaction, after which no more are added; other processes wait meanwhile."""


@dataclass(frozen=True)
class _Waiting:
    """Works that were handed over together, and their outcome."""

    works: Sequence[Callable[[Page], Any]]
    keep: bool
    done: Future[list[Any]] = field(default_factory=Future)


class GroupWriter:
    """A thread that posts what other threads hand to it.

    What waits while one transaction is written goes into the next. A work that refuses has no
    effect on others. A transaction that fails fails for all that were in it.

    Args:
        ledger: the ledger to post to.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._closed = False
        self._thread = Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    def post(self, work: Callable[[Page], T]) -> T:
        """Return the result of ``work``, once what it wrote is durable.

        Raises:
            ReticentError: the work raised it. Nothing of it was written.
            LedgerUnavailable: the ledger could not be written.
        """
        (outcome,) = self.post_each([work])
        if isinstance(outcome, ReticentError):
            raise outcome
        return outcome

    def post_each(
        self, works: Sequence[Callable[[Page], T]], *, keep: bool = True
    ) -> list[T | ReticentError]:
        """Return what each of ``works`` returns, once what they wrote is durable.

        A work that refuses gives its error. See ``Ledger.post_together``.

        Raises:
            LedgerUnavailable: the ledger could not be written.
        """
        if self._closed:
            raise LedgerUnavailable("the service is stopping; nothing is released")
        waiting = _Waiting(works, keep)
        self._waiting.put(waiting)
        return waiting.done.result()

    def close(self) -> None:
        """Wait until everything that was handed over is written."""
        self._closed = True
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        open_ = True
        while open_:
            first = self._waiting.get()
            group = [] if first is None else [first]
            open_ = first is not None
            while open_ and sum(len(one.works) for one in group) < _TOGETHER:
                try:
                    more = self._waiting.get_nowait()
                except Empty:
                    break
                open_ = more is not None
                if more is not None:
                    group.append(more)
            if group:
                self._write(group)

    def _write(self, group: list[_Waiting]) -> None:
        works = [work for waiting in group for work in waiting.works]
        try:
            outcomes = iter(
                self._ledger.post_together(works, keep=any(waiting.keep for waiting in group))
            )
        except BaseException as error:  # whoever waits must hear of it, whatever it is
            for waiting in group:
                waiting.done.set_exception(error)
            return
        for waiting in group:
            waiting.done.set_result([next(outcomes) for _ in waiting.works])
