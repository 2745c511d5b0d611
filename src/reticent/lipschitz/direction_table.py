"""Derivatives along every direction of a network with one hidden layer, by two products of neuron
states with fixed tables.

A hidden neuron is off, on or unstable. What it adds to the center and to the spread of a
derivative's range is therefore one of three whole numbers (the first is 0), known when the bound is
built. ``ExactLinear`` adds the same numbers up, so the ranges are the same to the last bit. No
array of (regions, directions, neurons) is needed on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from reticent.core.arrays import Array
from reticent.grids.arithmetic import (
    ExactLinear,
    Interval,
    around,
    euclidean_norm,
    power_of_two_at_least,
)
from reticent.lipschitz.bounds import combine
from reticent.lipschitz.slopes import scaled_by
from reticent.networks.layers import Affine

COLUMNS = 256
"""About so many pairs of a functional and a direction are looked at in one pass."""

ROWS = 256
"""Regions looked at in one pass. With COLUMNS it keeps the working arrays in the cache."""


@dataclass(frozen=True, eq=False)
class DirectionTable:
    """Blocks of directions, those that can reach the largest bounds first.

    Attributes:
        centers, spreads: whole numbers, for each block an array of shape (2 hidden, functionals *
            directions). The upper half holds what a neuron adds when it is on, the lower half what
            it adds when it is unstable.
        reach: the largest bound that any direction of this block or a later one gives anywhere in
            the domain. There is one entry more than blocks, which is 0.
        functionals: the number of functionals. Their order within a block is the first axis of its
            columns.
        slack, unit: the last layer's ``ExactLinear.slack`` and ``ExactLinear.unit``.
        largest_derivative: a public bound on the magnitudes of derivatives, in real terms.
        l2: True if functionals are combined by their l2 norm, False if by their sum.
    """

    centers: tuple[Array, ...]
    spreads: tuple[Array, ...]
    reach: Array
    functionals: int
    slack: float
    unit: float
    largest_derivative: float
    l2: bool

    rows_at_once: ClassVar[int] = ROWS

    @classmethod
    def build(
        cls,
        first: Array,
        last: Array,
        directions: Array,
        *,
        whole: Interval,
        l2: bool,
    ) -> DirectionTable:
        """Return the table of a network with one hidden layer.

        Args:
            first: weights of the first layer, shape (hidden, inputs).
            last: functionals times the weights of the last layer, shape (functionals, hidden).
            directions: input directions, shape (directions, inputs).
            whole: slopes of the hidden layer over the whole domain, shape (1, hidden).
            l2: the attribute of that name.
        """
        along, exact = first_and_last(first, last, directions, whole)
        largest = exact(scaled_by(along, _each(whole), along.largest())).largest()
        one, zero = np.ones(1), np.zeros(1)
        states = [
            scaled_by(along, Interval(low, one, 1.0), np.inf).on_grid(exact.input_unit)
            for low in (one, zero)
        ]
        # Axes: state and neuron, functional, direction.
        center, spread = (
            np.concatenate([_terms(state.lower * sign + state.upper, weight) for state in states])
            for sign, weight in ((1.0, exact.weight), (-1.0, exact.absolute))
        )
        table = cls(
            centers=(_flat(center),),
            spreads=(_flat(spread),),
            reach=np.array([np.inf, 0.0]),
            functionals=len(exact.weight),
            slack=exact.slack,
            unit=exact.output_unit,
            largest_derivative=largest,
            l2=l2,
        )
        reach = table._per_direction(_states(whole), 0)[0]
        order = np.argsort(-reach, kind="stable")
        step = max(1, COLUMNS // len(last))
        blocks = [order[start : start + step] for start in range(0, len(order), step)]
        return replace(
            table,
            centers=tuple(_flat(center[:, :, block]) for block in blocks),
            spreads=tuple(_flat(spread[:, :, block]) for block in blocks),
            reach=np.array([*(reach[block[0]] for block in blocks), 0.0]),
        )

    def largest(self, slopes: Interval, *, enough: float = np.inf) -> Array:
        """Return the bound for each row of ``slopes`` (shape (n, hidden)), shape (n,).

        A row is finished when no direction that is left can raise it, so the result does not depend
        on the blocks.

        Args:
            slopes: ranges of slopes, each 0, 1 or the interval between.
            enough: a number at which a row may also stop, as soon as the side on which its bound
                lies is known.
        """
        states = _states(slopes)
        settled = enough if enough < np.inf else 0.0
        best = np.zeros(len(states))
        rows = np.arange(len(states))
        for block, reach in enumerate(self.reach[:-1]):
            rows = rows[(np.maximum(best[rows], settled) < reach) & (best[rows] <= enough)]
            if not len(rows):
                break
            best[rows] = np.maximum(
                best[rows], self._per_direction(states[rows], block).max(axis=1)
            )
        return best

    def _per_direction(self, states: Array, block: int) -> Array:
        """Return the bound along each direction of a block, shape (n, directions)."""
        magnitude = np.abs(states @ self.centers[block])
        magnitude += states @ self.spreads[block]
        magnitude *= 0.5
        np.ceil(magnitude, out=magnitude)
        magnitude += self.slack
        magnitude = magnitude.reshape(len(states), self.functionals, -1)
        if self.l2:
            return euclidean_norm(magnitude.swapaxes(1, 2), self.unit, self.largest_derivative)
        return combine(magnitude * self.unit, "sum")


def first_and_last(
    first: Array, last: Array, directions: Array, whole: Interval
) -> tuple[Interval, ExactLinear]:
    """Return derivatives of the hidden pre-activations along every direction, shape (directions,
    hidden), and the map of what the neurons pass on to the functionals.
    """
    found = directions @ first.T
    error = np.abs(directions) @ np.abs(first).T * 2.0**-44
    unit = power_of_two_at_least(float(np.abs(found).max(initial=0.0))) * 2.0**-30
    lower, upper = around(found - error, unit).lower, around(found + error, unit).upper
    along = Interval(lower, upper, unit)
    passed = scaled_by(along, _each(whole), along.largest())
    return along, ExactLinear.build(Affine(last, np.zeros(len(last))), passed.largest())


def _each(slopes: Interval) -> Interval:
    """Return slopes (n, hidden) for every direction, shape (n, 1, hidden)."""
    return Interval(slopes.lower[:, None, :], slopes.upper[:, None, :], slopes.unit)


def _states(slopes: Interval) -> Array:
    """Return which neurons are on, and which unstable, shape (n, 2 hidden)."""
    return np.concatenate([slopes.lower, slopes.upper - slopes.lower], axis=1)


def _terms(values: Array, weight: Array) -> Array:
    """Return products of values (directions, hidden) and weights (functionals, hidden), shape
    (hidden, functionals, directions).
    """
    return np.asarray(weight.T[:, :, None] * values.T[:, None, :])


def _flat(terms: Array) -> Array:
    return np.ascontiguousarray(terms.reshape(len(terms), -1))
