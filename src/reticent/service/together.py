"""Answers by few threads to requests that wait at the same time."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, CancelledError, Future, get_running_loop
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Generic, TypeVar

from reticent.core.errors import ReticentError, ServiceBusy
from reticent.service.answering import Answer, Answering, Asked

T = TypeVar("T")
W = TypeVar("W")

_MOST_REQUESTS = 64
"""Requests that are answered together."""

_MOST_BYTES = 2**16
"""Bytes of their bodies, together: long requests gain nothing, and others would wait for them."""


class Turn(Generic[T]):
    """Work for another thread, which is begun or given up, and never both.

    Args:
        work: the work.
        deadline: seconds within which it must be begun.
    """

    def __init__(self, work: Callable[[], T], deadline: float) -> None:
        self._work: Callable[[], T] | None = work
        self._deadline, self._latest = deadline, time.monotonic() + deadline
        self._once = Lock()

    def begin(self) -> Callable[[], T]:
        """Give the work to the thread that is to do it.

        Raises:
            ServiceBusy: the work was given up, or is late.
        """
        work = self._taken()
        if work is None or time.monotonic() > self._latest:
            raise waited_too_long(self._deadline)
        return work

    async def waited(self, done: Future[W]) -> W:
        """Return what ``done`` becomes, however busy the thread is that begins the work.

        Raises:
            ServiceBusy: the work was not begun within its deadline, and will not be.
        """
        given_up = False

        def give_up() -> None:
            nonlocal given_up
            if not done.done() and self._taken() is not None:
                given_up = done.cancel()

        late = get_running_loop().call_later(self._deadline, give_up)
        try:
            return await done
        except CancelledError:
            if given_up:
                raise waited_too_long(self._deadline) from None
            raise
        finally:
            late.cancel()

    def _taken(self) -> Callable[[], T] | None:
        with self._once:
            work, self._work = self._work, None
            return work


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A request that waits for its turn.

    Attributes:
        turn: work that makes of the body what it asks, or its answer. It may take long, or refuse.
        size: bytes of its body.
        done: future of its answer, or of why there is none.
        loop: event loop where somebody waits for that.
    """

    turn: Turn[Asked | Answer]
    size: int
    done: Future[Answer | Exception]
    loop: AbstractEventLoop


class Together:
    """Threads that answer all waiting requests together.

    Each request has a charge of its own. They share one transaction, one draw and one wait for the
    disk. A request alone is answered at once. Under load, the longer one transaction takes, the
    more requests are in the next.

    Args:
        answering: the ``Answering`` of this worker.
        threads: number of threads. While one waits for the ledger, another takes those that came
            since.
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
        """Return the answer to what ``prepare`` makes of a body of ``size`` bytes.

        Raises:
            ServiceBusy: its turn did not come within the deadline. It was not begun.
            Others: the errors of ``prepare`` and ``Answering.answer``.
        """
        loop = get_running_loop()
        done: Future[Answer | Exception] = loop.create_future()
        turn = Turn(prepare, self._deadline)
        self._waiting.put(_Waiting(turn, size, done, loop))
        found = await turn.waited(done)
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """Wait until everything that was asked is answered."""
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
            with self._answering.turn:  # more come while another thread has it
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
        """Return ``first`` and those that wait behind it, and whether more may come."""
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
        for waiting in group:
            try:
                found.append(waiting.turn.begin()())
            except ReticentError as error:
                # Frames of its traceback hold the body, and would be held by this list.
                found.append(error.with_traceback(None))
            except Exception as error:  # of this request, whatever it is
                found.append(error)
        asked = [one for one in found if isinstance(one, Asked)]
        try:
            answers = iter(self._answering.answer(asked) if asked else [])
        except Exception as error:
            return [error if isinstance(one, Asked) else one for one in found]
        return [next(answers) if isinstance(one, Asked) else one for one in found]


def waited_too_long(deadline: float) -> ServiceBusy:
    """Return the error of a request that was not begun."""
    return ServiceBusy(
        f"the request waited for more than {deadline:g} s; nothing was charged. Repeat it a "
        "little later"
    )


def _tell(told: list[tuple[Future[Answer | Exception], Answer | Exception]]) -> None:
    for done, answer in told:
        if not done.done():  # its client may have gone
            done.set_result(answer)
