"""Writes to the ledger from many requests at once.

All that wait together share one transaction and one wait for the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, TypeVar

from reticent.core.errors import LedgerUnavailable, ReticentError
from reticent.ledger.chain import Page
from reticent.ledger.ledger import Ledger

T = TypeVar("T")

_TOGETHER = 64
"""Works in one transaction, after which no more are added; other processes wait meanwhile."""


@dataclass(eq=False)
class _Waiting:
    """Works that were handed over together, and their outcome: a list, or why there is none."""

    works: Sequence[Callable[[Page], Any]]
    keep: bool
    outcome: list[Any] | BaseException | None = None


class GroupWriter:
    """A turn to post, which a thread takes for all that wait.

    What waits while one transaction is written goes into the next. A work that refuses has no
    effect on others. A transaction that fails fails for all that were in it.

    Args:
        ledger: the ledger to post to.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: SimpleQueue[_Waiting] = SimpleQueue()
        self._closed = False
        self._turn = Lock()

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
        mine = _Waiting(works, keep)
        self._waiting.put(mine)
        # Whoever has the turn writes for all: no thread of its own has to be woken.
        while mine.outcome is None:
            with self._turn:
                if mine.outcome is None:
                    self._write()
        if isinstance(mine.outcome, BaseException):
            raise mine.outcome
        return mine.outcome

    def close(self) -> None:
        """Wait until everything that was handed over is written."""
        self._closed = True
        with self._turn:
            while not self._waiting.empty():
                self._write()

    def _write(self) -> None:
        """Post what waits, the first of it at least."""
        group: list[_Waiting] = []
        with suppress(Empty):
            while sum(len(one.works) for one in group) < _TOGETHER:
                group.append(self._waiting.get_nowait())
        works = [work for waiting in group for work in waiting.works]
        try:
            outcomes = iter(
                self._ledger.post_together(works, keep=any(waiting.keep for waiting in group))
            )
        except BaseException as error:  # whoever waits must hear of it, whatever it is
            for waiting in group:
                waiting.outcome = error
            return
        for waiting in group:
            waiting.outcome = [next(outcomes) for _ in waiting.works]
