"""Ranges of pre-activations over boxes by linear relaxation with public lower slopes: isotone,
tighter than intervals.

Over [l, u] with l < 0 <= u a ReLU lies below its chord and above ``slope * z`` for any slope in
[0, 1]. Substituting these lines from a neuron back to the input box leaves a linear function of
the input, whose maximum over the box is a sum. The chord over a smaller interval lies below the
chord over a larger one, and the lower slope is the same public number everywhere, so a smaller
box gives a smaller range. The least over several slopes is taken. Slopes that are *chosen* by
looking at the region (as CROWN does) are sound and not isotone. Proofs: docs/certificates.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.grids.arithmetic import Array, ExactLinear, Interval
from reticent.grids.rounding import float_error, fractions, grid_unit, quotient, rounded_up
from reticent.lipschitz.slopes import rectify

LOWER_SLOPES = (0.0, 0.5, 1.0)
"""Slopes below a ReLU, each used for all neurons at once."""

_WORKING_NUMBERS = 2**18


@dataclass(frozen=True, eq=False)
class RelaxedForward:
    """Ranges of all pre-activations of a ReLU chain over boxes: intervals, cut by the relaxation
    from layer 2 on.

    Attributes:
        weights, biases: of the linear layers in front of a ReLU, first to last.
        intervals: exact interval maps of those layers; the first is applied by the caller.
        scales: public bounds on the sum of all magnitudes added up for a pre-activation of each
            layer.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    intervals: tuple[ExactLinear, ...]
    scales: tuple[float, ...]

    @classmethod
    def build(
        cls, weights: list[Array], biases: list[Array], intervals: list[ExactLinear], largest: Array
    ) -> RelaxedForward:
        """For inputs of at most ``largest`` (shape (inputs,)) in magnitude."""
        scales: list[float] = []
        magnitude = largest
        for weight, bias in zip(weights, biases, strict=True):
            magnitude = np.abs(weight) @ magnitude + np.abs(bias)
            # Every layer on the way back adds at most this much, and the box at the end as well.
            scales.append((len(scales) + 2.0) * float(magnitude.max(initial=0.0)))
        return cls(tuple(weights), tuple(biases), tuple(intervals), tuple(scales))

    def __call__(self, box: Interval, first: Interval) -> list[Interval]:
        """Ranges of the pre-activations of every layer, shape (n, width) each.

        Args:
            box: the input boxes, shape (n, inputs).
            first: ranges of the first layer's pre-activations over the region, shape (n, width);
                a ball that is not a box can cut them below the range over ``box``.
        """
        # Each slope has a chain of its own: its lines must be drawn over ranges that its own
        # relaxation keeps to, or the lines of a smaller box need not lie between those of a larger
        # one.
        over_box = self.intervals[0](box)
        chains = [[over_box] for _ in LOWER_SLOPES]
        ranges = [first]
        for layer in range(1, len(self.weights)):
            values, _ = rectify(ranges[-1])
            cut = self.intervals[layer](values)
            for chain, slope in zip(chains, LOWER_SLOPES, strict=True):
                chain.append(self._relaxed(box, chain, cut.unit, slope))
                cut = Interval(
                    np.maximum(cut.lower, chain[-1].lower),
                    np.minimum(cut.upper, chain[-1].upper),
                    cut.unit,
                )
            ranges.append(cut)
        return ranges

    def _relaxed(
        self, box: Interval, chain: list[Interval], finest: float, slope: float
    ) -> Interval:
        """The range of the layer behind ``chain`` under the relaxation with this lower slope,
        rounded outward.
        """
        layer = len(chain)
        weight, scale = self.weights[layer], self.scales[layer]
        unit = max(grid_unit(scale), 128.0 * finest)
        terms = sum(part.shape[1] for part in self.weights[: layer + 1]) + layer
        rows = np.concatenate([weight, -weight])
        offsets = np.concatenate([self.biases[layer], -self.biases[layer]])
        upper = np.empty((len(box.lower), len(rows)))
        step = max(1, _WORKING_NUMBERS // rows.size)
        for start in range(0, len(upper), step):
            part = slice(start, start + step)
            lines = [_lines(_part(values, part)) for values in chain]
            upper[part] = self._largest(rows, offsets, lines, _part(box, part), slope)

        def at(index: tuple[int, ...], cast: Callable[[Array], Any]) -> Any:
            point, row = slice(index[0], index[0] + 1), slice(index[1], index[1] + 1)
            lines = [_lines(_cast(_part(values, point), cast)) for values in chain]
            ball = _cast(_part(box, point), cast)
            return self._largest(cast(rows[row]), cast(offsets[row]), lines, ball, slope)[0, 0]

        def closer(index: tuple[int, ...]) -> tuple[np.longdouble, float]:
            return at(index, np.longdouble), float_error(terms, scale, "longdouble")

        error = float_error(terms, scale)
        exactly = partial(at, cast=fractions)
        steps = rounded_up(upper, error, unit, exactly, closer) / finest
        return Interval(-steps[:, len(weight) :], steps[:, : len(weight)], finest)

    def _largest(
        self, rows: Array, offsets: Array, lines: list[_Lines], box: Interval, lower_slope: float
    ) -> Array:
        """The largest rows . relu(z) + offsets over each box under the relaxation, shape (n, k)."""
        exact = rows.dtype == object
        constant = np.broadcast_to(offsets, (len(box.lower), len(rows)))
        for layer, line in reversed(list(enumerate(lines))):
            weight, bias = self.weights[layer], self.biases[layer]
            if exact:
                weight, bias = fractions(weight), fractions(bias)
            below = np.where(line.on, 1, line.unstable * lower_slope)
            below = fractions(below) if exact else below
            # The lines multiply the next matrix and not the rows, of which there are more.
            positive = np.maximum(rows, 0)
            negative = rows - positive
            above = line.intercept + line.slope * bias
            constant = (
                constant
                + (positive @ above[:, :, None] + negative @ (below * bias)[:, :, None])[..., 0]
            )
            rows = positive @ (line.slope[:, :, None] * weight)
            rows = rows + negative @ (below[:, :, None] * weight)
        middle, reach = (
            (box.lower + box.upper) * box.unit / 2,
            (box.upper - box.lower) * box.unit / 2,
        )
        return np.asarray(
            (rows @ middle[:, :, None] + np.abs(rows) @ reach[:, :, None])[..., 0] + constant
        )


@dataclass(frozen=True, eq=False)
class _Lines:
    """Upper lines of one layer's ReLUs (slope, intercept) and which are on or unstable, shape
    (n, width) each.
    """

    slope: Array
    intercept: Array
    on: npt.NDArray[np.bool_]
    unstable: npt.NDArray[np.bool_]


def _lines(values: Interval) -> _Lines:
    lower, upper = values.lower * values.unit, values.upper * values.unit
    on = np.asarray(lower >= 0)
    unstable = np.asarray((lower < 0) & (upper >= 0))
    chord = quotient(np.where(unstable, upper, 0), np.where(unstable, upper - lower, 0))
    return _Lines(np.where(on, 1, chord), np.where(unstable, -chord * lower, 0), on, unstable)


def _part(values: Interval, rows: slice) -> Interval:
    return Interval(values.lower[rows], values.upper[rows], values.unit)


def _cast(values: Interval, cast: Callable[[Array], Any]) -> Interval:
    """The same intervals as fractions or long doubles; their unit is a power of two and so exact as
    it is.
    """
    return Interval(cast(values.lower * values.unit), cast(values.upper * values.unit), 1)
