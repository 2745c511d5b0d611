"""A lock that a forked child has anew."""

from __future__ import annotations

from threading import Lock
from types import TracebackType

from reticent.core.processes import this_process


class Turn:
    """A lock for one process. A forked child, a copy and an unpickled one start unlocked.

    A child is a copy of one thread. A lock that another thread of its parent held would never be
    released in it.

    Example:
        >>> with Turn() as turn:
        ...     pass
    """

    def __init__(self) -> None:
        self._locks: dict[object, Lock] = {}

    def __enter__(self) -> None:
        self._lock().acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock().release()

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        """Make a copy, pickled or not, that is a new lock."""
        return Turn, ()

    def _lock(self) -> Lock:
        # One step, so that threads that enter a new process at once get one and the same lock.
        return self._locks.setdefault(this_process(), Lock())
