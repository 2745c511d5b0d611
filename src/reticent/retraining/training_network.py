"""Forward and backward pass of a ReLU network whose weights are intervals, exact on grids
(records in columns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.retraining.loss_tables import sigmoid_range, softmax_range
from reticent.retraining.training_settings import TrainingGrids

ELEMENTS_AT_ONCE = 2**20
"""Entries of a table (units, units, boxes, records) of differences of logits."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Intervals for the two factors of every gradient entry of one layer.

    An entry is a row value times a column value. In the first layer rows are loss signals at the
    layer's units, and columns its inputs, known exactly. In later layers rows are the non-negative
    activations that enter (bias last), and columns the signals.

    Attributes:
        row_low, row_high: shape (rows, n), in grid units.
        column_low, column_high: shape (columns, n), one and the same array in the first layer.
        share: weight of each record's label, shape (n,), or None for 1. The record's signals are
            multiplied by it already, and its clip is not yet.
    """

    row_low: Array
    row_high: Array
    column_low: Array
    column_high: Array
    share: Array | None = None

    def box(self, place: int, rows: int) -> Factors:
        """Return the factors of the first box (0) or the last (-1), which has ``rows`` rows."""
        own = slice(0, rows) if place == 0 else slice(len(self.row_low) - rows, None)
        return replace(self, row_low=self.row_low[own], row_high=self.row_high[own])

    def reach(self) -> Array:
        """Return sizes that no entry over one box exceeds, shape (rows, columns)."""
        rows = np.maximum(-self.row_low, self.row_high).max(axis=1, initial=0.0)
        columns = np.maximum(-self.column_low, self.column_high).max(axis=1, initial=0.0)
        return np.asarray(rows[:, None] * columns)


def positive_part(values: Array) -> Array:
    """Return max(v, 0)."""
    return np.maximum(values, 0.0)


def known_inputs(lower: Array, upper: Array, inputs: Array, *, scale: float) -> tuple[Array, Array]:
    """Return exact ranges of ``scale W x`` over W in [lower, upper], both of shape (rows, n).

    Args:
        lower, upper: shape (rows, m).
        inputs: shape (m, n), of any sign.
        scale: a power of two, which leaves every product exact.
    """
    # Midpoint and radius (Rump 1999); with exact inputs nothing is lost.
    half = 0.5 * scale
    center = (half * (lower + upper)) @ inputs
    spread = (half * (upper - lower)) @ np.abs(inputs)
    low = center - spread
    center += spread
    return low, center


def _against(weights: Array, *, high: bool) -> Array:
    """Return rows that turn stacked activations [high; low] into the upper (lower) end of ``W a``
    for a >= 0.
    """
    plus, minus = positive_part(weights), np.minimum(weights, 0.0)
    return np.concatenate([plus, minus] if high else [minus, plus], axis=-1)


def _logit_differences(lower: Array, upper: Array, stacked: Array) -> Array:
    """Return lower ends of z_j - z_i over all weights and activations, shape (c, c, n).

    The common activation cancels.
    """
    least = lower[:, None, :] - upper[None, :, :]
    return np.asarray(
        (_against(least.reshape(-1, least.shape[-1]), high=False) @ stacked).reshape(
            *least.shape[:2], -1
        )
    )


def _weighted(low: Array, high: Array, share: Array | None) -> tuple[Array, Array]:
    """Return signals times their records' weights, in whole units again.

    A product is one monotone operation. Its rounding is far below the margin of the tables.
    """
    if share is None:
        return low, high
    return np.floor(low * share), np.ceil(high * share)


@dataclass(frozen=True, eq=False)
class IntervalNetwork:
    """A network with weights in a box, in grid units. Without hidden layers there may be many
    boxes.

    Attributes:
        grids: units.
        lower, upper: ends per layer, shape (units, inputs + 1), or without hidden layers (boxes,
            units, inputs + 1).
    """

    grids: TrainingGrids
    lower: Sequence[Array]
    upper: Sequence[Array]

    def logits(self, inputs: Array) -> Array:
        """Return lower ends of all differences of two logits, in real terms.

        Args:
            inputs: shape (features + 1, n), from ``TrainingGrids.inputs``.

        Returns:
            Shape (2, ..., n) for two classes: lower and upper end of the logit of class 1. Shape
            (c, c, ..., n) for more: ``[j, i]`` at most z_j - z_i. With several boxes ``...`` is
            their axis.
        """
        return self._logits(inputs, self._hidden(inputs))

    def factors(self, inputs: Array, labels: Integers) -> list[Factors]:
        """Return factors of every layer's gradient. Without hidden layers, boxes and units share
        one axis.

        Args:
            inputs: shape (features + 1, n), in units.
            labels: shape (n,), in 0 .. classes - 1.
        """
        stacks = self._hidden(inputs)
        weights = self.grids.settings.class_weights
        share = None if weights is None else np.array(weights)[labels]
        if not stacks:
            low, high = self._linear_signals(inputs, labels, share)
            return [Factors(low, high, inputs, inputs, share)]
        low, high = self._loss_signal(self._logits(inputs, stacks), labels, share)
        factors: list[Factors] = []
        for layer in reversed(range(1, len(self.lower))):
            stack = stacks[layer - 1]
            half = len(stack) // 2
            factors.insert(0, Factors(stack[half:], stack[:half], low, high, share))
            low, high = self._below(layer, low, high, stack, half)
        factors.insert(0, Factors(low, high, inputs, inputs, share))
        return factors

    def _linear_signals(
        self, inputs: Array, labels: Integers, share: Array | None
    ) -> tuple[Array, Array]:
        """Return the loss gradient of a linear model's boxes, shape (boxes units, n)."""
        lower, upper = (
            ends[0].reshape(-1, *ends[0].shape[-2:]) for ends in (self.lower, self.upper)
        )
        boxes, units = lower.shape[:2]
        low, high = np.empty((2, boxes, units, len(labels)))
        at_once = max(1, ELEMENTS_AT_ONCE // (units**2 * max(len(labels), 1)))
        for start in range(0, boxes, at_once):
            own = slice(start, start + at_once)
            some = IntervalNetwork(self.grids, [lower[own]], [upper[own]])
            low[own], high[own] = some._loss_signal(some._logits(inputs, []), labels, share)
        return low.reshape(boxes * units, -1), high.reshape(boxes * units, -1)

    def _hidden(self, inputs: Array) -> list[Array]:
        """Return activations behind every hidden layer, [high, one, low, one] by rows."""
        stacks: list[Array] = []
        grids = self.grids
        for layer in range(len(self.lower) - 1):
            unit = grids.activation_units[layer + 1]
            scale = grids.weight_units[layer] * grids.activation_units[layer] / unit
            if layer == 0:
                low, high = known_inputs(self.lower[0], self.upper[0], inputs, scale=scale)
            else:
                rows = np.concatenate(
                    [
                        _against(self.upper[layer], high=True),
                        _against(self.lower[layer], high=False),
                    ]
                )
                high, low = np.split((scale * rows) @ stacks[-1], 2)
            units = len(low)
            stack = np.empty((2 * units + 2, low.shape[1]))
            for place, ends, rounding in (
                (slice(0, units), high, np.ceil),
                (slice(units + 1, -1), low, np.floor),
            ):
                np.clip(rounding(ends, out=ends), 0.0, grids.caps[layer], out=stack[place])
            stack[units] = stack[-1] = 1.0 / unit
            stacks.append(stack)
        return stacks

    def _logits(self, inputs: Array, stacks: list[Array]) -> Array:
        grids = self.grids
        unit = grids.weight_units[-1] * grids.activation_units[-1]
        lower, upper = self.lower[-1], self.upper[-1]
        if not stacks:
            shape = (*lower.shape[:-1], inputs.shape[1])
            flat = lower.reshape(-1, lower.shape[-1]), upper.reshape(-1, upper.shape[-1])
            low, high = (
                np.moveaxis(end.reshape(shape), -2, 0)
                for end in known_inputs(*flat, inputs, scale=1.0)
            )
            ends = (
                np.stack([low[0], high[0]])
                if grids.settings.outputs == 1
                else low[:, None] - high[None]
            )
        elif grids.settings.outputs == 1:
            ends = np.stack(
                [
                    (_against(lower, high=False) @ stacks[-1])[0],
                    (_against(upper, high=True) @ stacks[-1])[0],
                ]
            )
        else:
            ends = _logit_differences(lower, upper, stacks[-1])
        ends *= unit
        return ends

    def _loss_signal(
        self, logits: Array, labels: Integers, share: Array | None
    ) -> tuple[Array, Array]:
        """Return the loss gradient at the logits in signal units, shape (..., outputs, n).

        It is probabilities minus the label, times the label's weight.
        """
        binary = self.grids.settings.outputs == 1
        low, high = sigmoid_range(*logits) if binary else softmax_range(logits)
        unit = self.grids.signal_units[-1]
        low /= unit
        high /= unit
        np.floor(low, out=low)
        np.ceil(high, out=high)
        if binary:
            truth = labels / unit
            return _weighted((low - truth)[..., None, :], (high - truth)[..., None, :], share)
        truth = (labels[None] == np.arange(len(low))[:, None]) / unit
        truth = truth.reshape(len(low), *(1,) * (low.ndim - 2), -1)
        ends = np.moveaxis(low - truth, 0, -2), np.moveaxis(high - truth, 0, -2)
        return _weighted(*ends, share)

    def _below(
        self, layer: int, low: Array, high: Array, stack: Array, half: int
    ) -> tuple[Array, Array]:
        """Return the signal at the outputs of the layer below ``layer``."""
        lower, upper = self.lower[layer].T[:-1], self.upper[layer].T[:-1]
        signal = np.concatenate(
            [positive_part(high), positive_part(low), positive_part(-high), positive_part(-low)]
        )
        units = self.grids
        scale = (
            units.weight_units[layer] * units.signal_units[layer] / units.signal_units[layer - 1]
        )
        upper_rows = [
            positive_part(upper),
            np.minimum(upper, 0.0),
            -positive_part(lower),
            -np.minimum(lower, 0.0),
        ]
        lower_rows = [
            np.minimum(lower, 0.0),
            positive_part(lower),
            -np.minimum(upper, 0.0),
            -positive_part(upper),
        ]
        # A neuron that is surely on passes its signal, one that is surely off passes 0, any other
        # either. Rectified ends at the cap are on: the signal of a cut activation is passed
        # straight through. Activations are whole numbers, signals below 2^53: a limit is 0 where an
        # activation's end is 0, else beyond any signal.
        least, most = stack[half : half + len(upper)] * -(2.0**53), stack[: len(upper)] * 2.0**53
        above, below = (
            (scale * np.concatenate(rows, axis=1)) @ signal for rows in (upper_rows, lower_rows)
        )
        np.minimum(np.maximum(above, least, out=above), most, out=above)
        np.maximum(
            np.minimum(below, np.negative(least, out=least), out=below),
            np.negative(most, out=most),
            out=below,
        )
        return np.floor(below, out=below), np.ceil(above, out=above)
