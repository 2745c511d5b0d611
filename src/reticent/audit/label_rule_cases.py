"""The worst neighbours of mechanisms that answer from public nodes: two inputs whose probabilities
differ most, of all nodes that are neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.audit.worst_case import AuditCase, Scores
from reticent.core.arrays import Array, Integers
from reticent.grids.public_graph import PublicGraph
from reticent.mechanisms import AnyTwo, FiniteChannel, HopRelease
from reticent.mechanisms.finite_channel import Nodes
from reticent.noise import Sampler

Draw = Callable[[int, Sampler], Integers]


def finite_channel_case(table: FiniteChannel, *, epsilon: float) -> AuditCase:
    """The two neighbouring nodes, of all, at which one answer's shares differ by the largest
    factor.
    """
    points = _points(table)
    one, other = _worst(table, table.shares.astype(np.float64), table.shares.astype(np.float64))

    def draw(cell: int) -> Draw:
        return lambda runs, sampler: table.release(
            np.repeat(points[cell, None], runs, axis=0), sampler=sampler
        )

    chances = table.probabilities(points[[one, other]])
    return _case(table.name, epsilon, chances, draw(one), draw(other))


def hop_release_case(mechanism: HopRelease, *, epsilon: float) -> AuditCase:
    """The same over cells, and over the labels that the classifier may prefer in either.

    A label's share is largest where the classifier prefers it, and smallest where it prefers
    another one, as far as the cell allows that.
    """
    points, allowed = _points(mechanism), mechanism.allowed
    chances = []
    for preferred in range(mechanism.classes):
        logits = np.tile(np.eye(mechanism.classes)[preferred], (len(points), 1))
        chances.append(mechanism.probabilities(points, logits))
    # shape (preferred, cells, labels); where a cell does not allow the preferred label, it counts
    # as the first that is allowed, which is one of the others
    each = np.stack(chances)
    high, low = each.max(axis=0).T, each.min(axis=0).T
    one, other = _worst(mechanism, high, low)
    label = int(np.argmax(high[:, one] / low[:, other]))
    rival = next(
        (place for place in np.flatnonzero(allowed[:, other]).tolist() if place != label), label
    )

    def draw(cell: int, preferred: int) -> Draw:
        logits = np.eye(mechanism.classes)[preferred]
        return lambda runs, sampler: mechanism.release(
            np.tile(points[cell], (runs, 1)), np.tile(logits, (runs, 1)), sampler=sampler
        )

    pair = np.stack([each[label, one], each[rival, other]])
    return _case(mechanism.name, epsilon, pair, draw(one, label), draw(other, rival))


def _worst(mechanism: FiniteChannel | HopRelease, high: Array, low: Array) -> tuple[int, int]:
    """The touching cells (c, c') with the largest quotient of ``high`` at c and ``low`` at c'."""
    lattice = _cells(mechanism)
    best = (0.0, 0, 0)
    for above, below in zip(high, low, strict=True):
        quotient = lattice.touching_maximum(above) / below
        other = int(quotient.argmax())
        if quotient[other] > best[0]:
            mark = np.zeros(lattice.size, dtype=np.bool_)
            mark[other] = True
            near = np.flatnonzero(lattice.touching_maximum(mark))
            best = (float(quotient[other]), int(near[above[near].argmax()]), other)
    return best[1:]


def _cells(mechanism: FiniteChannel | HopRelease) -> Nodes:
    return mechanism.lattice if isinstance(mechanism, HopRelease) else mechanism.nodes


def _points(mechanism: FiniteChannel | HopRelease) -> npt.NDArray[Any]:
    """An input of every node, shape (cells, dimension) or (nodes,): a cell's middle, the public
    row, or the node's number.
    """
    lattice = _cells(mechanism)
    if isinstance(lattice, AnyTwo):
        return np.arange(lattice.size)
    if isinstance(lattice, PublicGraph):
        return lattice.points
    points = np.zeros((lattice.size, lattice.dimension))
    points[:, lattice.coordinates] = lattice.center
    return points


def _case(name: str, epsilon: float, chances: Array, first: Draw, second: Draw) -> AuditCase:
    ratio = np.log(chances[0]) - np.log(chances[1])

    def scores(draw: Draw) -> Scores:
        return lambda runs, sampler: ratio[draw(runs, sampler)]

    return AuditCase(name, epsilon, 0.0, scores(first), scores(second))
