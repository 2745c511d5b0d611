"""Ranges of pre-activations over boxes by linear relaxation with public lower slopes, isotone and
tighter than intervals.

Over [l, u] with l < 0 <= u a ReLU lies below its chord and above ``slope * z`` for any slope in
[0, 1]. Substituting these lines from a neuron back to the input box leaves a linear function of the
input, whose maximum over the box is a sum. The chord over a smaller interval lies below the chord
over a larger one, and the lower slope is the same public number everywhere. Hence a smaller box
gives a smaller range. The least over several slopes is taken. Slopes that are *chosen* by looking
at the region (as CROWN does) are sound and not isotone. Proofs: docs/certificates.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.norms import Norm
from reticent.grids.arithmetic import ExactLinear, Interval
from reticent.grids.rounding import (
    Surd,
    float_error,
    fractions,
    grid_unit,
    quotient,
    rounded_up,
)
from reticent.lipschitz.bounds import slices
from reticent.lipschitz.slopes import rectify

Mask = npt.NDArray[np.bool_]

LOWER_SLOPES = (0.0, 0.5, 1.0)
"""Slopes below a ReLU, each used for all neurons at once."""

_WORKING_NUMBERS = 2**16
_FEW_COLUMNS = 32
_TINY = 2.0**-500
"""The loss of a root to squares below the range of float64, for a radius of 1."""


@dataclass(frozen=True, eq=False)
class RelaxedForward:
    """Ranges of all pre-activations of a ReLU chain over regions: intervals, cut by the relaxation
    from layer 2 on.

    Attributes:
        weights, biases: the weights and biases of the linear layers in front of a ReLU, first to
            last.
        intervals: exact interval maps of those layers. The caller applies the first.
        scales: public bounds on the sum of all magnitudes added up for a pre-activation of each
            layer.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    intervals: tuple[ExactLinear, ...]
    scales: tuple[float, ...]

    @classmethod
    def build(
        cls,
        weights: list[Array],
        biases: list[Array],
        intervals: list[ExactLinear],
        largest: Array,
        spread: Array | float = 0.0,
    ) -> RelaxedForward:
        """Return the relaxation for inputs of at most ``largest`` (shape (inputs,)) in magnitude.

        Inputs may also lie in balls around such, over which the first layer's pre-activations
        change by up to ``spread`` either way, shape (first width,).
        """
        scales: list[float] = []
        magnitude, added = largest, spread
        for weight, bias, interval in zip(weights, biases, intervals, strict=True):
            magnitude = np.abs(weight) @ magnitude + np.abs(bias) + added
            # Every layer on the way back adds at most this much, and the region at the end as well.
            scales.append((len(scales) + 2.0) * float(magnitude.max(initial=0.0)))
            # Lines are drawn over ranges that are rounded outward, by as much for small neurons as
            # for large ones.
            rounding = 2.0 * interval.slack + 4.0 if len(scales) == 1 else 128.0
            magnitude = magnitude + max(grid_unit(scales[-1]), rounding * interval.output_unit)
            added = 0.0
        return cls(tuple(weights), tuple(biases), tuple(intervals), tuple(scales))

    def __call__(
        self, inputs: Inputs, over: Interval, first: Interval
    ) -> tuple[list[Mask], list[Mask]]:
        """Return which neurons of every layer are on, and which are unstable, as the ends of their
        ranges say, shape (n, width) each.

        Args:
            inputs: the regions.
            over: ranges of the first layer's pre-activations over them, shape (n, width), which no
                point of ``inputs`` may leave.
            first: the same over the regions in question, which may be smaller: a ball cut to a box.
        """
        rows = max(len(part) * max(part.shape) for part in self.weights)
        parts = [
            self._states(inputs.part(part), _part(over, part), _part(first, part))
            for part in slices(len(inputs.middle), _WORKING_NUMBERS // rows)
        ]
        on, unstable = (
            [np.concatenate(each) for each in zip(*some, strict=True)]
            for some in zip(*parts, strict=True)
        )
        return on, unstable

    def ranges(
        self, inputs: Inputs, over: Interval, first: Interval, layers: int | None = None
    ) -> tuple[list[list[Interval]], list[Interval]]:
        """Return the relaxed ranges of the first ``layers`` layers (None: of all) for each slope,
        and the intersections of all ranges of each layer, shape (n, width) each.
        """
        # Each slope has a chain of its own: its lines must be drawn over ranges that its own
        # relaxation keeps to, or the lines of a smaller region need not lie between those of a
        # larger one.
        chains = [[over] for _ in LOWER_SLOPES]
        ranges = [first]
        for layer in range(1, len(self.weights) if layers is None else layers):
            values, _ = rectify(ranges[-1])
            cut = self.intervals[layer](values)
            for chain, slope in zip(chains, LOWER_SLOPES, strict=True):
                chain.append(self._relaxed(inputs, chain, cut.unit, slope))
                cut = Interval(
                    np.maximum(cut.lower, chain[-1].lower),
                    np.minimum(cut.upper, chain[-1].upper),
                    cut.unit,
                )
            ranges.append(cut)
        return chains, ranges

    def _states(
        self, inputs: Inputs, over: Interval, first: Interval
    ) -> tuple[list[Mask], list[Mask]]:
        last = len(self.weights) - 1
        chains, ranges = self.ranges(inputs, over, first, max(last, 1))
        if last:
            interval = self.intervals[last](rectify(ranges[-1])[0])
            ranges.append(self._narrowed(inputs, chains, interval))
        on = [part.lower >= 0 for part in ranges]
        return on, [(part.lower < 0) & (part.upper >= 0) for part in ranges]

    def _narrowed(
        self, inputs: Inputs, chains: list[list[Interval]], interval: Interval
    ) -> Interval:
        """Return ranges of the last layer with ends of the same signs as the intersection of its
        interval and its relaxed ranges.

        A center's pre-activation lies in every relaxed range. So none moves the end on its side of
        0 across, and an end that is known to be on the other side needs no more slopes.
        """
        last, values = len(self.weights) - 1, inputs.middle
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = (np.maximum(values, 0.0) if layer else values) @ weight.T + bias
        error = float_error(sum(part.shape[1] for part in self.weights) + last, self.scales[last])
        ends = np.concatenate([interval.upper, -interval.lower], axis=1)
        left = (np.concatenate([values, -values], axis=1) <= error) & (ends >= 0)
        for chain, slope in zip(chains, LOWER_SLOPES, strict=True):
            asked = np.flatnonzero(left.any(axis=0))
            if not len(asked):
                break
            steps = self._upper(inputs, chain, interval.unit, slope, asked)
            ends[:, asked] = np.minimum(ends[:, asked], steps)
            left[:, asked] &= steps >= 0
        width = values.shape[1]
        return Interval(-ends[:, width:], ends[:, :width], interval.unit)

    def _relaxed(
        self, inputs: Inputs, chain: list[Interval], finest: float, slope: float
    ) -> Interval:
        """Return the range of the layer behind ``chain`` under the relaxation with this lower
        slope, rounded outward.
        """
        width = len(self.weights[len(chain)])
        steps = self._upper(inputs, chain, finest, slope, np.arange(2 * width))
        return Interval(-steps[:, width:], steps[:, :width], finest)

    def _upper(
        self,
        inputs: Inputs,
        chain: list[Interval],
        finest: float,
        slope: float,
        asked: npt.NDArray[np.intp],
    ) -> Array:
        """Return the largest values of some pre-activations behind ``chain`` and, from the layer's
        width on, of their opposites, rounded up, in units of ``finest``, shape (n, asked).
        """
        layer = len(chain)
        weight, bias, scale = self.weights[layer], self.biases[layer], self.scales[layer]
        rows = np.concatenate([weight, -weight])[asked]
        offsets = np.concatenate([bias, -bias])[asked]
        unit = max(grid_unit(scale), 128.0 * finest)
        terms = sum(part.shape[1] for part in self.weights[: layer + 1]) + layer
        upper = self._largest(rows, offsets, [_lines(values) for values in chain], inputs, slope)

        def at(index: tuple[int, ...], cast: Callable[[Array], Any]) -> Any:
            point, row = slice(index[0], index[0] + 1), slice(index[1], index[1] + 1)
            lines = [_lines(_cast(_part(values, point), cast)) for values in chain]
            region = inputs.part(point).cast(cast)
            return self._largest(cast(rows[row]), cast(offsets[row]), lines, region, slope)[0, 0]

        def closer(index: tuple[int, ...]) -> tuple[np.longdouble, float]:
            return at(index, np.longdouble), float_error(terms, scale, "longdouble") + lost

        lost = 0.0 if inputs.norm is Norm.LINF else _TINY * float(inputs.reach.max(initial=0.0))
        error = float_error(terms, scale) + lost
        exactly = partial(at, cast=fractions)
        return rounded_up(upper, error, unit, exactly, closer) / finest

    def _largest(
        self, rows: Array, offsets: Array, lines: list[_Lines], inputs: Inputs, lower_slope: float
    ) -> Array:
        """Return the largest rows . relu(z) + offsets over each region under the relaxation, shape
        (n, k).
        """
        exact = rows.dtype == object
        constant = np.broadcast_to(offsets, (len(inputs.middle), len(rows)))
        for layer, line in reversed(list(enumerate(lines))):
            some = np.flatnonzero((line.on | line.unstable).any(axis=0))  # the others pass nothing
            line, rows = line.part(some), rows[..., some]
            weight, bias = self.weights[layer][some], self.biases[layer][some]
            if exact:
                weight, bias = fractions(weight), fractions(bias)
            below = np.where(line.on, 1, line.unstable * lower_slope)
            below = fractions(below) if exact else below
            positive = np.maximum(rows, 0)
            negative = rows - positive
            above = line.intercept + line.slope * bias
            constant = (
                constant
                + (positive @ above[:, :, None] + negative @ (below * bias)[:, :, None])[..., 0]
            )
            if weight.shape[1] <= _FEW_COLUMNS:  # fewer numbers to scale than the rows have
                rows = positive @ (line.slope[:, :, None] * weight)
                rows = rows + negative @ (below[:, :, None] * weight)
            else:
                rows = positive * line.slope[:, None, :] + negative * below[:, None, :]
                rows = rows @ weight
        return inputs.largest(rows, constant)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Regions that linear functions are maximised over exactly: boxes, or balls.

    Attributes:
        middle: shape (n, inputs), real terms.
        reach: half widths of boxes, shape (n, inputs), or radii of balls, shape (n, 1).
        norm: the norm of the balls, l-infinity for boxes.
    """

    middle: Array
    reach: Array
    norm: Norm = Norm.LINF

    @classmethod
    def boxes(cls, box: Interval) -> Inputs:
        """Return these boxes. Halves of whole numbers times a power of two are exact."""
        half = box.unit / 2
        return cls((box.lower + box.upper) * half, (box.upper - box.lower) * half)

    def part(self, rows: slice) -> Inputs:
        """Return some of the regions."""
        return Inputs(self.middle[rows], self.reach[rows], self.norm)

    def cast(self, cast: Callable[[Array], Any]) -> Inputs:
        """Return the same regions as fractions or long doubles."""
        return Inputs(cast(self.middle), cast(self.reach), self.norm)

    def largest(self, rows: Array, constant: Array) -> Array:
        """Return the largest rows . x + constant over each region, shape (n, k).

        Args:
            rows: fractions, float64 or long doubles, shape (n, k, inputs).
            constant: shape (n, k).
        """
        steady = (rows @ self.middle[:, :, None])[..., 0] + constant
        if self.norm is Norm.LINF:
            return np.asarray(steady + (np.abs(rows) @ self.reach[:, :, None])[..., 0])
        return np.asarray(steady + dual_norms(rows, self.norm, self.reach))


def dual_norms(rows: Array, norm: Norm, radius: Array | int = 1) -> Array:
    """Return the largest rows . t over balls of ``radius`` in ``norm``, shape (..., n) to (...,).

    For fractions in l2 the results are ``Surd``.

    Example:
        >>> dual_norms(np.array([[3.0, -4.0]]), Norm.L2).tolist()
        [5.0]
    """
    if norm is Norm.LINF:
        return np.asarray(np.abs(rows).sum(axis=-1) * radius)
    if norm is Norm.L1:
        return np.asarray(np.abs(rows).max(axis=-1) * radius)
    squares = (rows * rows).sum(axis=-1)
    if rows.dtype != object:
        return np.asarray(np.sqrt(squares) * radius)
    surds = np.frompyfunc(lambda square: Surd(Fraction(0), Fraction(square)), 1, 1)
    return np.asarray(surds(squares * radius * radius), dtype=object)


@dataclass(frozen=True, eq=False)
class _Lines:
    """Upper lines of one layer's ReLUs (slope, intercept), and the neurons that are on or unstable,
    shape (n, width) each.
    """

    slope: Array
    intercept: Array
    on: Mask
    unstable: Mask

    def part(self, neurons: npt.NDArray[np.intp]) -> _Lines:
        """Return the lines of some neurons."""
        return _Lines(
            self.slope[:, neurons],
            self.intercept[:, neurons],
            self.on[:, neurons],
            self.unstable[:, neurons],
        )


def _lines(values: Interval) -> _Lines:
    lower, upper = values.lower * values.unit, values.upper * values.unit
    on = np.asarray(lower >= 0)
    unstable = np.asarray((lower < 0) & (upper >= 0))
    chord = quotient(np.where(unstable, upper, 0), np.where(unstable, upper - lower, 0))
    return _Lines(np.where(on, 1, chord), np.where(unstable, -chord * lower, 0), on, unstable)


def _part(values: Interval, rows: slice) -> Interval:
    return Interval(values.lower[rows], values.upper[rows], values.unit)


def _cast(values: Interval, cast: Callable[[Array], Any]) -> Interval:
    """Return the same intervals as fractions or long doubles. Their unit is a power of two and so
    exact as it is.
    """
    return Interval(cast(values.lower * values.unit), cast(values.upper * values.unit), 1)
