"""The process that an object was made in. A count in memory may go on in one process only."""

from __future__ import annotations

import os

_here: object = object()
"""A mark of this process. A child gets one of its own, so a number that the system uses again
cannot be mistaken for it.
"""


def _renew() -> None:
    global _here  # noqa: PLW0603
    _here = object()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_renew)


def this_process() -> tuple[object, int]:
    """Return a mark of this process, different from its parent's and from each child's."""
    # The process number tells forks behind Python's back, which call no hook.
    return _here, os.getpid()


class HomeProcess:
    """A mark that remembers the process that made it.

    After a fork the parent and every child hold one copy each of every object, and a count in
    memory goes on in each of them by itself. Code that such a count limits (queries of a plan) has
    to ask first whether it is at home.

    Example:
        >>> HomeProcess().is_here
        True
    """

    def __init__(self) -> None:
        self._token, self._number = this_process()

    @property
    def is_here(self) -> bool:
        """True in the process that made this object, False in a forked child and in every copy."""
        return (self._token, self._number) == this_process()

    def __reduce__(self) -> tuple[type[HomeProcess], tuple[()], dict[str, object]]:
        """Make a copy, pickled or not, that is at home nowhere."""
        return (HomeProcess, (), {"_token": None, "_number": -1})
