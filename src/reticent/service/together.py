"""Requests that wait at the same time are answered together, by few threads."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from reticent.core.errors import ServiceBusy
from reticent.service.answering import Answer, Answering, Asked

_MOST_REQUESTS = 64
"""Requests that are answered together."""

_MOST_BYTES = 2**16
"""Bytes of their bodies, together: long requests gain nothing, and others would wait for them."""


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A request that waits for its turn.

    Attributes:
        prepare: makes of its body what it asks, or its answer; may take long, or refuse.
        size: bytes of its body.
        latest: when it must have begun, as ``time.monotonic`` counts.
        done: becomes its answer, or why there is none.
        loop: where somebody waits for that.
    """

    prepare: Callable[[], Asked | Answer]
    size: int
    latest: float
    done: Future[Answer | Exception]
    loop: AbstractEventLoop


class Together:
    """Threads that take all requests that wait, and answer them by one charge each, but one
    transaction, one draw and one wait for the disk.

    A request alone is answered at once. Under load, the longer one transaction takes the more
    requests are in the next.

    Args:
        answering: of this worker.
        threads: how many; while one waits for the ledger, another takes those that came since.
        deadline: seconds that a request may wait before it is begun.
    """

    def __init__(self, answering: Answering, *, threads: int, deadline: float) -> None:
        self._answering, self._deadline = answering, deadline
        self._waiting: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._threads = [
            Thread(target=self._run, name=f"answer-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def answer(self, prepare: Callable[[], Asked | Answer], *, size: int) -> Answer:
        """The answer to what ``prepare`` makes of a body of ``size`` bytes.

        Raises:
            ServiceBusy: its turn did not come within the deadline; it was not begun.
            Others: as ``prepare`` and ``Answering.answer`` say.
        """
        loop = get_running_loop()
        done: Future[Answer | Exception] = loop.create_future()
        latest = time.monotonic() + self._deadline
        self._waiting.put(_Waiting(prepare, size, latest, done, loop))
        found = await done
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """Waits until everything that was asked is answered."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        open_ = True
        while open_:
            first = self._waiting.get()
            if first is None:
                return
            with self._answering.turn():  # more come while another thread has it
                group, open_ = self._taken(first)
                found = self._answered(group)
            for loop in {waiting.loop for waiting in group}:
                told = [
                    (waiting.done, answer)
                    for waiting, answer in zip(group, found, strict=True)
                    if waiting.loop is loop
                ]
                with suppress(RuntimeError):  # it was closed, and nobody waits any more
                    loop.call_soon_threadsafe(_tell, told)

    def _taken(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        """``first`` and those that wait behind it, and whether more may come."""
        group, size = [first], first.size
        while len(group) < _MOST_REQUESTS and size < _MOST_BYTES:
            try:
                more = self._waiting.get_nowait()
            except Empty:
                break
            if more is None:
                return group, False
            group.append(more)
            size += more.size
        return group, True

    def _answered(self, group: list[_Waiting]) -> list[Answer | Exception]:
        found: list[Answer | Exception | Asked] = []
        now = time.monotonic()
        for waiting in group:
            try:
                late = now > waiting.latest
                found.append(waited_too_long(self._deadline) if late else waiting.prepare())
            except Exception as error:  # of this request, whatever it is
                found.append(error)
        asked = [one for one in found if isinstance(one, Asked)]
        try:
            answers = iter(self._answering.answer(asked) if asked else [])
        except Exception as error:
            return [error if isinstance(one, Asked) else one for one in found]
        return [next(answers) if isinstance(one, Asked) else one for one in found]


def waited_too_long(deadline: float) -> ServiceBusy:
    """Says that a request was not begun."""
    return ServiceBusy(
        f"the request waited for more than {deadline:g} s; nothing was charged. Repeat it a "
        "little later"
    )


def _tell(told: list[tuple[Future[Answer | Exception], Answer | Exception]]) -> None:
    for done, answer in told:
        if not done.done():  # its client may have gone
            done.set_result(answer)
