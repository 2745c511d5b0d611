"""A budget for every record, which decides who still takes part in an answer."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from reticent.core.arrays import Booleans, Integers
from reticent.core.checks import count
from reticent.core.errors import BudgetExceeded, InvalidInput
from reticent.core.processes import HomeProcess

LARGEST_CAP = 2**62
"""Spending is counted in int64, and one answer spends at most a cap."""


class IndividualFilter:
    """A guard that lets a record into an answer while its spending, this answer included, is within
    its cap.

    **Guarantee.** On every run, however answers are chosen, the charges of any one record sum to at
    most ``cap``. A record takes part or not by its own charges alone. ``IndividualGaussianBudget``
    states the privacy that follows.

    Spending is exact, in whole numbers. It is *private*, since it tells which questions lie near a
    record. It also outlives the record: a number that was handed out once keeps its spending for
    ever. A caller who forgets a record and takes it in again has to use the same number.

    A filter counts in the memory of one process. In a forked child and in a copy nobody takes part
    any more, and asking is refused, since each would count by itself.

    Args:
        cap: most that one record spends, 1 to 2^62.

    Example:
        >>> filter = IndividualFilter(cap=10)
        >>> numbers = filter.more(2)
        >>> [filter.admit(numbers, np.array([4, 10])).tolist() for _ in range(3)]
        [[True, True], [True, False], [False, False]]

    References:
        - Feldman and Zrnic (2021), "Individual privacy accounting via a Rényi filter",
          arXiv:2008.11193, algorithm 3.

    See Also:
        reticent.accounting.IndividualGaussianBudget: the privacy that a cap gives.
        reticent.ledger.Ledger: one budget for all records together.
    """

    def __init__(self, *, cap: int) -> None:
        self.cap = count(cap, name="cap")
        if self.cap > LARGEST_CAP:
            raise InvalidInput(f"cap={cap}: expected at most 2**62")
        self._spent: Integers = np.zeros(0, dtype=np.int64)
        self._places: Integers = np.zeros(0, dtype=np.int64)
        self._home = HomeProcess()

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Copied here, so that a shallow copy does not share its home with the original.
        self.__dict__.update(state, _home=copy(state["_home"]))

    def __len__(self) -> int:
        return len(self._spent)

    @property
    def is_here(self) -> bool:
        """True where answers may be asked for, False in a forked child and in a copy."""
        return self._home.is_here

    def more(self, records: int) -> Integers:
        """Return numbers, shape (records,), for records that have spent nothing yet."""
        first = len(self._spent)
        new = np.zeros(count(records, name="records", minimum=0), dtype=np.int64)
        self._spent = np.concatenate([self._spent, new])
        self._places = np.zeros_like(self._spent)
        return np.arange(first, len(self._spent), dtype=np.int64)

    def admit(self, records: Integers, costs: Integers) -> Booleans:
        """Return which records take part in one answer, and charge those.

        Args:
            records: shape (m,), numbers from ``more``, each at most once.
            costs: cost of the answer to each record, shape (m,), int64, 0 to 2^62.

        Returns:
            Shape (m,). Private.

        Raises:
            BudgetExceeded: in a forked child or a copy. Nobody is charged.
            InvalidInput: a number twice, or a cost below 0. Nobody is charged.
        """
        if not self.is_here:
            raise BudgetExceeded(
                "records: a forked or copied filter has no budget, because each copy would count "
                "by itself; expected the one that was made, in the process where it was"
            )
        # A number that occurs twice would be let in twice and charged once.
        self._places[records] = np.arange(len(records))
        if not np.array_equal(self._places[records], np.arange(len(records))):
            raise InvalidInput("records: expected every number at most once")
        if costs.size and costs.min() < 0:
            raise InvalidInput("costs: expected whole numbers of at least 0")
        # Subtracted, because spending plus cost could leave int64.
        inside = np.asarray(self._spent[records] <= self.cap - costs)
        self._spent[records[inside]] += costs[inside]
        return inside

    def room(self, records: Integers) -> Integers:
        """Return the rest of each record's cap, shape (m,). Private: for the owner of the records
        only.
        """
        return np.asarray(self.cap - self._spent[records])
