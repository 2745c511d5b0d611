"""The worst known pair of neighbours of each mechanism, and what it releases of either.

A case runs the mechanism for real. It writes labels as numbers, and a vector as its
log-likelihood ratio by the shape of the noise. By the Neyman-Pearson lemma no other number
tells better. What these numbers are worth is learnt from the draws, never taken from the
probabilities that a mechanism states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.audit.beliefs import Atoms, Logistic
from reticent.audit.sequential import Draw, SequentialTest, bet, by_coin
from reticent.core.arrays import Array
from reticent.core.errors import InvalidInput
from reticent.core.norms import Norm
from reticent.grids.public_graph import PublicGraph
from reticent.mechanisms import (
    AdditiveMechanism,
    AnyTwo,
    FiniteChannel,
    HopRelease,
    ProposeTestRelease,
)
from reticent.noise import Sampler

Outputs = Callable[[int, Sampler], npt.NDArray[Any]]
"""From the number of runs and a sampler to an output of each, shape (n,) or (n, d)."""

Released = tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]
"""Values and which of them are withheld."""

_AT_ONCE = 2**14

TO_GRID = 2.0**20
"""Ratios are rounded to it: the last bits of a computed ratio are no output of the mechanism."""

_MOST = 1e3
"""Ratios are cut here."""


@dataclass(frozen=True)
class AuditCase:
    """A mechanism on two neighbours.

    Attributes:
        name: mechanism and pair, in words.
        epsilon: the claim to be examined.
        delta: the delta of that claim.
        first: function that runs the mechanism on one neighbour: (runs, sampler) -> outputs, shape
            (runs,) or (runs, d).
        second: the same on the other neighbour.
    """

    name: str
    epsilon: float
    delta: float
    first: Outputs
    second: Outputs

    def test(self, *, alpha: float) -> SequentialTest:
        """Return a test of the claim by outputs of this case, without draws yet."""
        return SequentialTest(
            epsilon=self.epsilon,
            delta=self.delta,
            alpha=alpha,
            beliefs=(Logistic(trim=0.002), Atoms()),
        )

    def draw(self, sampler: Sampler) -> Draw:
        """Return the draw of this case, as ``bet`` takes it."""
        return by_coin(lambda n: self.first(n, sampler), lambda n: self.second(n, sampler))

    def bet(
        self, *, draws: int, alpha: float, sampler: Sampler, stop: bool = False
    ) -> SequentialTest:
        """Return the test of the claim after so many draws.

        Args:
            draws: draws of both neighbours together.
            alpha: the chance of refuting a claim that holds, in (0, 1).
            sampler: source of the noise.
            stop: whether to stop when the claim is refuted.
        """
        test, random = self.test(alpha=alpha), np.random.default_rng([0, 0xCA5E])
        draw = self.draw(sampler)
        bet(draw, [test], batch=min(draws, _AT_ONCE), runs=draws, stop=stop, random=random)
        return test


def label_outputs(values: npt.ArrayLike, withheld: npt.ArrayLike = False) -> Array:
    """Return labels as numbers, shape (n,), and -1 where they are withheld.

    Args:
        values: shape (n,), whole numbers of at least 0, or (n, labels), of which one is 1.
        withheld: shape (n,).
    """
    given = np.asarray(values)
    labels = given.argmax(axis=1) if given.ndim == 2 else given
    return np.asarray(np.where(withheld, -1.0, labels))


def vector_outputs(
    vectors: Array, withheld: npt.NDArray[np.bool_], *, density: Callable[[Array], Array]
) -> Array:
    """Return the log-likelihood ratio of vectors, and whether they are withheld, shape (n, 2).

    Args:
        vectors: shape (n, m). Rows that are withheld may hold anything.
        withheld: shape (n,).
        density: function from vectors (n, m) to the log density of the noise for either neighbour,
            shape (n, 2), up to a number for each vector.
    """
    one, other = density(np.where(withheld[:, None], 0.0, vectors)).T
    ratio = np.where(withheld, 0.0, np.clip(one - other, -_MOST, _MOST))
    return np.stack([np.rint(ratio * TO_GRID) / TO_GRID, withheld.astype(np.float64)], axis=1)


def additive_outputs(
    additive: AdditiveMechanism, released: Released, centers: tuple[Array, Array]
) -> Array:
    """Return ``vector_outputs`` by the shape of this mechanism's noise around two exact values."""
    density = partial(additive.log_likelihood, values=np.stack(centers))
    return vector_outputs(*released, density=density)


def worst_shift(additive: AdditiveMechanism) -> Array:
    """Return a difference of ``additive.sensitivity`` that it hides no better than any other, shape
    (m,).

    It is one coordinate for l1 and l2, all coordinates for l-infinity.
    """
    shift = np.zeros(additive.dimension)
    shift[: additive.dimension if additive.norm is Norm.LINF else 1] = additive.sensitivity
    return shift


def additive_case(
    additive: AdditiveMechanism, *, shift: Array, epsilon: float, delta: float
) -> AuditCase:
    """Test the mechanism on the values 0 and ``shift`` (shape (m,)), against a claim of
    (epsilon, delta).
    """
    centers = (np.zeros(len(shift)), shift)

    def answers(center: Array, runs: int, sampler: Sampler) -> Array:
        values = np.broadcast_to(center, (runs, len(shift)))
        released = additive.release(values, sampler=sampler), np.zeros(runs, dtype=np.bool_)
        return additive_outputs(additive, released, centers)

    return case_of(additive.name, epsilon, delta, answers, centers)


def propose_test_release_case(
    mechanism: ProposeTestRelease,
    *,
    levels: tuple[int, int],
    shift: Array,
    epsilon: float,
    delta: float,
) -> AuditCase:
    """Test neighbours at ``levels``, whose values are 0 and ``shift`` (shape (m,)).

    Raises:
        InvalidInput: the mechanism releases something else than a vector.
    """
    additive = mechanism.inner
    if not isinstance(additive, AdditiveMechanism):
        raise InvalidInput(
            f"inner={type(additive).__name__}: expected an additive mechanism; audit one for "
            "labels by itself"
        )
    centers = (np.zeros(len(shift)), shift)

    def answers(side: tuple[Array, int], runs: int, sampler: Sampler) -> Array:
        values = np.broadcast_to(side[0], (runs, len(shift)))
        released = mechanism.release(values, np.full(runs, side[1]), sampler=sampler)
        return additive_outputs(additive, released, centers)

    name = f"{mechanism.name}, levels {levels[0]} and {levels[1]}"
    return case_of(name, epsilon, delta, answers, sides(centers, levels))


def worst_levels(mechanism: ProposeTestRelease) -> tuple[int, int]:
    """Return neighbouring levels, the higher one first, at which passing is still limited by
    epsilon.

    There p is at most 1/2 after.
    """
    below_half = np.flatnonzero(mechanism.pass_probabilities[1:] <= 0.5)
    lower = int(below_half[-1]) if len(below_half) else 0
    return lower + 1, lower


def finite_channel_case(table: FiniteChannel, *, epsilon: float) -> AuditCase:
    """Test the two neighbouring nodes, of all, at which one answer's shares differ by the
    largest factor.
    """
    points, shares = _points(table), table.shares.astype(np.float64)

    def run(cell: int, runs: int, sampler: Sampler) -> Array:
        given = np.repeat(points[cell, None], runs, axis=0)
        return label_outputs(table.release(given, sampler=sampler))

    return case_of(table.name, epsilon, 0.0, run, _worst(table, shares, shares))


def hop_release_case(mechanism: HopRelease, *, epsilon: float) -> AuditCase:
    """Test the same over cells, and over the labels that the classifier may prefer in either.

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

    def run(side: tuple[int, int], runs: int, sampler: Sampler) -> Array:
        logits = np.tile(np.eye(mechanism.classes)[side[1]], (runs, 1))
        given = np.tile(points[side[0]], (runs, 1))
        return label_outputs(mechanism.release(given, logits, sampler=sampler))

    return case_of(mechanism.name, epsilon, 0.0, run, ((one, label), (other, rival)))


def _worst(mechanism: FiniteChannel | HopRelease, high: Array, low: Array) -> tuple[int, int]:
    """Return the touching cells (c, c') with the largest quotient of ``high`` at c and ``low``
    at c'.
    """
    lattice = mechanism.lattice if isinstance(mechanism, HopRelease) else mechanism.nodes
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


def _points(mechanism: FiniteChannel | HopRelease) -> npt.NDArray[Any]:
    """Return an input of every node, shape (cells, dimension) or (nodes,).

    It is a cell's middle, the public row, or the node's number.
    """
    lattice = mechanism.lattice if isinstance(mechanism, HopRelease) else mechanism.nodes
    if isinstance(lattice, AnyTwo):
        return np.arange(lattice.size)
    if isinstance(lattice, PublicGraph):
        return lattice.points
    points = np.zeros((lattice.size, lattice.dimension))
    points[:, lattice.coordinates] = lattice.center
    return points


def sides(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return what each of two neighbours has, of two things that are given for both."""
    return (one[0], other[0]), (one[1], other[1])


def case_of(
    name: str,
    epsilon: float,
    delta: float,
    run: Callable[[Any, int, Sampler], Array],
    sides: tuple[Any, Any],
) -> AuditCase:
    """Return a case whose outputs on a side are ``run(side, runs, sampler)``."""
    first, second = sides
    return AuditCase(
        name, epsilon, delta, lambda n, s: run(first, n, s), lambda n, s: run(second, n, s)
    )
