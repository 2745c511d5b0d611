"""The largest derivative over all pairs of an output functional and an input direction, correctly
rounded.

A screen in float32 bounds every pair of one region by three products of matrices. Only pairs that
could still be the largest, a few in a thousand, are looked at more closely (``directional``), in
order. Where the later layers are narrow, branch and bound searches their slopes completely, so that
the result is the maximum over all slopes without relaxation. The order of the search and its
floating-point errors cannot be seen in the result, which is the exact maximum rounded up to a
public grid. Where floating point cannot tell which grid point that is, fractions do.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.grids.rounding import (
    OFFSET,
    float_error,
    fractions,
    grid_point,
    grid_unit,
    rounded_up,
    steps_up,
)
from reticent.lipschitz.directional import (
    FREE,
    Choices,
    Rows,
    Slopes,
    largest,
    ranges,
    relaxed,
    rescaled,
    separate,
)

Array32 = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]

SEARCHED_WIDTH = 16
"""Up to this many neurons behind the first hidden layer all their slopes are searched. Beyond, they
are relaxed.
"""

_FIRST = 8
_BLOCK = 256
_NODES = 1024


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of a network, scaled layer by layer by powers of two.

    Attributes:
        rows, directions: the functionals (k, outputs) and directions (p, inputs), one of each pair
            of opposites.
        matrices: the matrices of all linear layers, each at most 1 in magnitude.
        functionals: rows times the last matrix, shape (k, last width).
        along: the directions' images under the first matrix, shape (p, first width).
        searched: True if slopes of later layers are searched completely.
        error, screen_error: bounds on the errors of a value in float64 and in float32.
        grid: the step of the grid of results, in scaled terms.
        unit: the real value of one in scaled terms, a power of two.
    """

    rows: Array
    directions: Array
    matrices: tuple[Array, ...]
    functionals: Array
    along: Array
    searched: bool
    error: float
    screen_error: float
    grid: float
    unit: float

    @classmethod
    def build(cls, rows: Array, directions: Array, matrices: list[Array]) -> Pairs:
        """Return the pairs of a network with at least one hidden layer.

        Raises:
            CertificationFailed: the product of the layers' magnitudes leaves float64.
        """
        scaled, unit = rescaled(matrices)
        magnitude = np.unique(np.abs(directions), axis=0)
        for matrix in scaled[:-1]:
            magnitude = magnitude @ np.abs(matrix).T
        scale = float((magnitude @ (np.abs(rows) @ np.abs(scaled[-1])).T).max(initial=0.0))
        # Ranges of derivatives carry the errors of all layers before them, and each layer adds what
        # its ranges carry.
        terms = len(scaled) * sum(sum(matrix.shape) for matrix in scaled)
        return cls(
            rows=rows,
            directions=directions,
            matrices=scaled,
            functionals=rows @ scaled[-1],
            along=directions @ scaled[0].T,
            searched=sum(len(matrix) for matrix in scaled[1:-1]) <= SEARCHED_WIDTH,
            error=float_error(terms, scale) + 2.0**-900,
            screen_error=_screen_error(scaled, scale),
            grid=grid_unit(scale),
            unit=unit,
        )

    @property
    def inner(self) -> tuple[Array, ...]:
        """The matrices from each hidden layer to the next."""
        return self.matrices[1:-1]

    def largest(self, slopes: Slopes) -> float:
        """Return the largest value of all pairs, rounded up to the grid, or 0 if a whole layer is
        off.
        """
        return 0.0 if slopes.silent else self._rounded(slopes, self._screen(slopes))

    def at_most(self, slopes: Slopes, limit: float) -> bool:
        """Return True if ``largest(slopes) <= limit``, which is often known sooner."""
        if slopes.silent:
            return limit >= 0
        # The largest grid point that is at most the limit.
        steps = np.floor(np.clip(limit / self.unit / self.grid, -1.0, 2.0**40) - float(OFFSET))
        if (steps + float(OFFSET)) * self.grid * self.unit > limit:
            steps -= 1
        highest = float(grid_point(steps, self.grid))
        screen = self._screen(slopes)
        found = self._maximum(slopes, screen, highest - 3 * self.error, highest + self.error)
        if found > highest + self.error:
            return False
        return found + 2 * self.error <= highest or not self._exceeds(
            slopes, screen, Fraction(highest)
        )

    def per_direction(self, slopes: Slopes) -> Array:
        """Return the largest value of each functional and its negative along each direction,
        rounded up, shape (p, k).

        Slopes of later layers are relaxed here, never searched.
        """
        if slopes.silent:
            return np.zeros((len(self.along), len(self.functionals)))
        shape = len(self.along), len(self.functionals)
        directions, functionals = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
        parts = []
        for start in range(0, len(directions), _BLOCK):
            part = slice(start, start + _BLOCK)
            ones = np.ones(len(functionals[part]))
            rows = self._rows(slopes, functionals[part], directions[part], ones)
            values = _relaxed_values(rows.with_opposites(), self.inner, slopes)
            parts.append(values.reshape(2, -1).max(axis=0))

        def exactly(index: tuple[int, ...]) -> Fraction:
            functional, direction = int(functionals[index[0]]), int(directions[index[0]])
            row = self._exact_rows(slopes, functional, direction, 1.0).with_opposites()
            return Fraction(max(_relaxed_values(row, self._exact_inner, slopes)))

        values = rounded_up(np.concatenate(parts), self.error, self.grid, exactly)
        return np.asarray(values.reshape(shape) * self.unit)

    def _rounded(self, slopes: Slopes, screen: Array32) -> float:
        value = self._maximum(slopes, screen, -np.inf, np.inf)
        # The exact maximum lies between value - error and value + 2 error.
        low, high = steps_up(np.array([value - self.error, value + 3 * self.error]), self.grid)
        if low < high and not self._exceeds(
            slopes, screen, (Fraction(low) + OFFSET) * Fraction(self.grid)
        ):
            high = low
        return float(grid_point(high, self.grid)) * self.unit

    @cached_property
    def _single(self) -> tuple[Array32, Array32, tuple[Array32, ...]]:
        """The functionals, the directions' images and the inner matrices in float32."""
        inner = tuple(matrix.astype(np.float32) for matrix in self.inner)
        return self.functionals.astype(np.float32), self.along.astype(np.float32), inner

    def _screen(self, slopes: Slopes) -> Array32:
        """Return upper bounds on each pair and on its opposite, shape (2, functionals, directions),
        but for ``screen_error``.

        Every unstable neuron of a later layer is taken at half its derivative plus half the largest
        magnitude of it. The two of a pair differ by the sign of the rest, so that mostly one of
        them is out of the question.
        """
        half = [_single(0.5 * unstable) for unstable in slopes.unstable]
        kept = [_single(on) + part for on, part in zip(slopes.on, half, strict=True)]
        gradient, along, inner = self._single
        middle, reach = along * kept[0], np.abs(along) * half[0]
        center, spread = middle, reach
        swings: list[Array32] = []
        for layer, matrix in enumerate(inner, start=1):
            center, spread = center @ matrix.T, spread @ np.abs(matrix).T
            swings.append(half[layer] * (np.abs(center) + spread))
            if layer < len(inner):
                unstable, on = slopes.unstable[layer], _single(slopes.on[layer])
                low = np.where(unstable, np.minimum(center - spread, 0), (center - spread) * on)
                high = np.where(unstable, np.maximum(center + spread, 0), (center + spread) * on)
                center, spread = _single(0.5 * (low + high)), _single(0.5 * (high - low))
        sizes: list[Array32] = []
        for matrix, keep in zip(reversed(inner), reversed(kept[1:]), strict=True):
            sizes.append(np.abs(gradient))
            gradient = (gradient * keep) @ matrix
        sizes.append(np.abs(gradient))
        loss: Array32 = (
            np.concatenate(sizes, axis=1) @ np.concatenate([*reversed(swings), reach], axis=1).T
        )
        steady = gradient @ middle.T
        return np.stack([loss + steady, loss - steady])

    def _maximum(self, slopes: Slopes, screen: Array32, floor: float, enough: float) -> float:
        """Return a number m such that the exact maximum is in [m - error, m + 2 error], if it is
        not below ``floor``.

        A maximum of at most ``floor + 2 error`` may give ``floor``. The search stops once m is
        above ``enough``.
        """
        flat = screen.ravel()
        most = np.argsort(-screen.max(axis=(0, 2)))[:_FIRST]
        best = self._block(slopes, _tops(screen, most), floor, enough)
        left = np.flatnonzero(flat > best - self.screen_error)
        left = left[np.argsort(-flat[left], kind="stable")]
        for start in range(0, len(left), _BLOCK):
            if best > enough or flat[left[start]] <= best - self.screen_error:
                break
            part = left[start : start + _BLOCK]
            best = self._block(slopes, part[flat[part] > best - self.screen_error], best, enough)
        return best

    def _block(self, slopes: Slopes, pairs: Indices, best: float, enough: float) -> float:
        """Return ``_maximum`` over some pairs (places in the screen), given that ``best`` is
        attained elsewhere.
        """
        rows = self._rows(slopes, *self._places(pairs))
        if not self.searched:
            values = largest(rows, self.inner, slopes).value
            above = rows.part(
                values > best
            )  # the others cannot raise it, whatever their second bound is
            second = separate(above, self.inner, slopes)
            return max(best, float(np.minimum(values[values > best], second).max(initial=best)))
        stack = [(rows, np.full((len(rows), sum(map(len, self.inner))), FREE, dtype=np.int8))]
        while stack and best <= enough:
            rows, choices = stack.pop()
            found = largest(rows, self.inner, slopes, choices)
            best = max(best, float(found.attained.max()))
            # Once every slope is decided, a value is attained but for rounding.
            left = np.flatnonzero(
                (found.value > best + self.error) & (found.gap.max(axis=1, initial=0.0) > 0)
            )
            for start in range(0, len(left), _NODES):
                part = left[start : start + _NODES]
                twice = np.tile(part, 2)
                decided = choices[twice]
                decided[np.arange(len(twice)), found.gap[twice].argmax(axis=1)] = np.repeat(
                    [0, 1], len(part)
                )
                stack.append((rows.part(twice), decided))
        return best

    def _places(self, pairs: Indices) -> tuple[Indices, Indices, Array]:
        """Return the functionals, directions and signs of these places in a flattened screen."""
        shape = 2, len(self.functionals), len(self.along)
        opposite, functionals, directions = np.unravel_index(pairs, shape)
        return functionals, directions, np.where(opposite == 0, 1.0, -1.0)

    def _rows(
        self, slopes: Slopes, functionals: Indices, directions: Indices, signs: Array
    ) -> Rows:
        """Return these functionals times their signs, each along its direction."""
        ways, which = np.unique(directions, return_inverse=True)
        lines = relaxed(ranges(self.along[ways], self.inner, slopes)).part(which)
        signed = signs[:, None] * self.functionals[functionals]
        return Rows(signed, self.along[directions], lines)

    def _exact_rows(self, slopes: Slopes, functional: int, direction: int, sign: float) -> Rows:
        """Return one row in fractions."""
        along = fractions(self.directions[direction][None]) @ fractions(self.matrices[0]).T
        values = fractions(sign * self.rows[functional][None]) @ fractions(self.matrices[-1])
        return Rows(values, along, relaxed(ranges(along, self._exact_inner, slopes)))

    @cached_property
    def _exact_inner(self) -> tuple[Array, ...]:
        return tuple(fractions(matrix) for matrix in self.inner)

    def _exceeds(self, slopes: Slopes, screen: Array32, limit: Fraction) -> bool:
        """Return True if the exact maximum is above ``limit``.

        Floating point decides where it can, fractions where it cannot.
        """
        pairs = np.flatnonzero(screen.ravel() > float(limit) - self.screen_error)
        undecided = np.full((1, sum(map(len, self.inner))), FREE, dtype=np.int8)
        for start in range(0, len(pairs), _BLOCK):
            places = self._places(pairs[start : start + _BLOCK])
            value = _relaxed_values(self._rows(slopes, *places), self.inner, slopes)
            for index in np.flatnonzero(value > float(limit) - 2 * self.error):
                functional, direction, sign = (part[index] for part in places)
                exact = self._exact_rows(slopes, int(functional), int(direction), float(sign))
                if self._row_exceeds(slopes, exact, undecided, limit):
                    return True
        return False

    def _row_exceeds(self, slopes: Slopes, row: Rows, choices: Choices, limit: Fraction) -> bool:
        if not self.searched:
            return bool(_relaxed_values(row, self._exact_inner, slopes)[0] > limit)
        found = largest(row, self._exact_inner, slopes, choices)
        if found.value[0] <= limit:
            return False
        if found.attained[0] > limit:
            return True
        # The value is above what is attained, so some neuron still loses to the relaxation.
        worst = int(found.gap[0].argmax())
        for value in (0, 1):
            decided = choices.copy()
            decided[0, worst] = value
            if self._row_exceeds(slopes, row, decided, limit):
                return True
        return False


def _tops(screen: Array32, functionals: Indices) -> Indices:
    """Return the place in the flattened screen where each of these functionals has its largest
    bound.
    """
    directions = screen.shape[2]
    own = screen[:, functionals].transpose(1, 0, 2).reshape(len(functionals), -1).argmax(axis=1)
    sign, direction = np.divmod(own, directions)
    return np.ravel_multi_index((sign, functionals, direction), screen.shape)


def _screen_error(scaled: tuple[Array, ...], scale: float) -> float:
    """Return a bound on what float32 adds to or takes from an entry of the screen.

    On the way to an entry each number passes the dot products of the inner matrices once, forward
    or backward, and the joint one at the end. A dot product of k terms is off by at most (k + 2) u
    times the sum of its magnitudes (Higham, section 3.1), a layer by six units more for its
    entries. Half low plus high and half high minus low carry no more error together than the larger
    of the two. Each hidden layer's part of the joint sum has at most half of ``scale`` as its sum
    of magnitudes, and the rest at most all of it. The factor 2 covers products of errors.
    """
    hidden = [len(matrix) for matrix in scaled[:-1]]
    terms = 2 * sum(hidden) + sum(hidden) + 16 * (len(hidden) + 1)
    share = 0.5 * len(hidden) + 1.0
    # Numbers below the range of float32 count as nothing. Fewer than 2**25 of them are added up.
    return 2.0 * terms * 2.0**-24 * share * scale + 2.0**-100


def _single(values: npt.NDArray[Any]) -> Array32:
    return values.astype(np.float32)


def _relaxed_values(rows: Rows, weights: tuple[Array, ...], slopes: Slopes) -> Array:
    """Return the smaller of two isotone bounds on each row, neither of which is always the
    smaller.
    """
    return np.minimum(largest(rows, weights, slopes).value, separate(rows, weights, slopes))
