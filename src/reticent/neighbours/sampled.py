"""The k nearest records of a Poisson sample, read off the sorted list of all records."""

from __future__ import annotations

import math

import numpy as np

from reticent.core.arrays import Booleans, Integers
from reticent.core.checks import count, positive
from reticent.core.errors import InvalidParameter
from reticent.neighbours.records import Records
from reticent.neighbours.search import NeighbourLists, NeighbourSearch
from reticent.noise import Sampler
from reticent.noise.coins import coins

_SAFE_DEVIATIONS = 4.0


class SampledNeighbours:
    """The voters on a query: the k nearest of a fresh Poisson sample of all units.

    **Guarantee.** (i) The k records returned have exactly the distribution of the k nearest, by
    (distance, place in ``Records``), of a sample that each unit enters independently with
    ``probability``. (ii) For any fixed sample, adding one unit makes at most one record enter the
    result, its nearest one, and at most one leave it.

    *Why (i).* Coins are independent of each other and of the data. Looking at them in the order of
    the list, and stopping once k included records were seen, reads the same coins as tossing all of
    them first. A coin that nobody looks at need not exist. The depth of a list decides only the
    number of coins tossed at once, not what any of them shows. *Why (ii).* The result is the first
    k entries of the list of included records. A new unit inserts at most one entry and moves the
    others back without changing their order, because the order of two records depends on those two
    alone. So at most one falls off the end.

    Every call tosses fresh coins, so two calls are two independent samples.

    Args:
        search: the sorted lists.
        neighbours: k, the number of records that vote, at least 1.
        probability: probability that a unit is included, in (0, 1].

    Raises:
        InvalidParameter: a parameter out of its range.

    Edge cases: fewer than k included records give a shorter result, padded with -1. An empty sample
    gives only -1.
    """

    def __init__(self, search: NeighbourSearch, *, neighbours: int, probability: float) -> None:
        self.search = search
        self.neighbours = count(neighbours, name="neighbours")
        self.probability = positive(probability, name="probability")
        if self.probability > 1:
            raise InvalidParameter(f"probability={probability!r}: expected a number in (0, 1]")

    @property
    def records(self) -> Records:
        """Records that may vote."""
        return self.search.records

    @property
    def depth(self) -> int:
        """Length of list at which k included records are very likely among those listed. Longer
        lists are made where they are not.
        """
        k, rate = self.neighbours, self.probability
        return math.ceil((k + _SAFE_DEVIATIONS * math.sqrt(k * (1 - rate))) / rate)

    def draw(self, lists: NeighbourLists, *, sampler: Sampler) -> Integers:
        """Return a fresh sample for every query of a block.

        Args:
            lists: lists that ``search`` made.
            sampler: source of randomness for the coins.

        Returns:
            Shape (b, k), places in ``Records``, nearest first, -1 where fewer than k records are
            included. Private.
        """
        heads = coins(lists.order.shape, probability=self.probability, sampler=sampler)
        chosen, found = self._first(lists.order, heads)
        short = np.flatnonzero((found < self.neighbours) & (lists.lengths < len(self.records)))
        for row in short:
            chosen[row] = self._deepened(lists, int(row), heads[row, : lists.lengths[row]], sampler)
        return chosen

    def _deepened(
        self, lists: NeighbourLists, row: int, heads: Booleans, sampler: Sampler
    ) -> Integers:
        """Return the sample of one query with the coins it has seen and further ones, until k
        records are included or none is left.
        """
        depth = len(heads)
        while True:
            depth = max(2 * depth, 64)
            order = self.search.deeper(lists, row, depth=depth)
            more = coins(len(order) - len(heads), probability=self.probability, sampler=sampler)
            heads = np.concatenate([heads, more])
            chosen, found = self._first(order[None, :], heads[None, :])
            if found[0] == self.neighbours or len(order) == len(self.records):
                return np.asarray(chosen[0])

    def _first(self, order: Integers, heads: Booleans) -> tuple[Integers, Integers]:
        """Return the first k included places of every row, padded with -1, and their number."""
        included = heads & (order >= 0)
        if self.records.units is not None and order.size:
            included &= _nearest_of_units(np.where(order >= 0, self.records.units[order], -1))
        number = included.cumsum(axis=1, dtype=np.int32)
        rows, columns = np.nonzero(included & (number <= self.neighbours))
        chosen = np.full((len(order), self.neighbours), -1, dtype=np.int64)
        chosen[rows, number[rows, columns] - 1] = order[rows, columns]
        found = number[:, -1] if order.shape[1] else np.zeros(len(order), dtype=np.int32)
        return chosen, np.minimum(found, self.neighbours).astype(np.int64)


def _nearest_of_units(units: Integers) -> Booleans:
    """Return the first entry of each unit in its row of ``units``, shape (b, width)."""
    grouped = np.argsort(units, axis=1, kind="stable")
    names = np.take_along_axis(units, grouped, axis=1)
    opens = np.ones(units.shape, dtype=np.bool_)
    opens[:, 1:] = names[:, 1:] != names[:, :-1]
    result = np.empty_like(opens)
    np.put_along_axis(result, grouped, opens, axis=1)
    return result
