"""How much of a plan of answers is used, counted in the memory of one process."""

from __future__ import annotations

from copy import copy
from threading import Lock
from typing import Any, Protocol

from reticent.core.errors import BudgetExceeded
from reticent.core.processes import HomeProcess


class Count(Protocol):
    """What says how much of a plan is used: ``MemoryCount`` in one process, ``PlanCounter`` in a
    ledger.
    """

    asked: int
    answered: int

    @property
    def remaining(self) -> int:
        """Queries that may still be asked; 0 once all labels are given out."""

    def take(self, queries: int) -> int:
        """Counts queries as asked before they are, and returns how many labels they may give
        out.
        """

    def settle(self, *, unused: int) -> None:
        """Gives back labels that were granted and not given out."""


class MemoryCount:
    """The count of one plan in the memory of one process.

    **Guarantee.** At most ``queries`` queries and ``answers`` labels, over all threads. A forked
    child, a copy and an unpickled count have none left: each would go on counting by itself.

    Args:
        queries, answers: at most.
    """

    def __init__(self, queries: int, answers: int) -> None:
        self.queries, self.answers = queries, answers
        self.asked = self.answered = 0
        self._home = HomeProcess()
        self._turn = Lock()  # two threads must not both find room for what only one of them may ask

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Copied here, so that a shallow copy does not share its home with the original either.
        self.__dict__.update(state, _home=copy(state["_home"]), _turn=Lock())

    @property
    def remaining(self) -> int:
        """See ``Count``; 0 in a child or a copy."""
        if not self._home.is_here:
            return 0
        return self.queries - self.asked if self.answered < self.answers else 0

    def take(self, queries: int) -> int:
        """See ``Count``.

        Raises:
            BudgetExceeded: more than are left, or in a child or a copy; nothing is counted.
        """
        if (
            not self._home.is_here
        ):  # before the lock, which another thread may have held when the process was forked
            raise BudgetExceeded(
                f"queries: requested {queries}, 0 left: this is a forked or copied session, "
                "and the queries of its plan are "
                "counted where it was fitted; release there, or book the plan in a ledger, "
                "where all processes count together"
            )
        with self._turn:
            if queries > self.remaining:
                raise BudgetExceeded(
                    f"queries: requested {queries}, {self.asked} of {self.queries} asked and "
                    f"{self.answered} of "
                    f"{self.answers} labels given out; at most {self.remaining} more may be "
                    "asked under this plan"
                )
            granted = min(queries, self.answers - self.answered)
            self.asked += queries
            self.answered += granted
            return granted

    def settle(self, *, unused: int) -> None:
        """See ``Count``."""
        with self._turn:
            self.answered -= unused
