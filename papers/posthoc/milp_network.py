"""A ReLU chain over a box as a mixed-integer program: consistent points, and the Jacobian's norm
along one functional.

One binary per neuron says which slope it has. Where it is on its pre-activation is at least 0,
where it is off at most 0, so at a kink both are possible. The gradient of a functional is
carried back: behind each neuron it is the gradient in front of it times that binary, a product
that four inequalities describe exactly. The l1 norm of the gradient takes one more binary per
input, its sign. Big-M constants are ranges of pre-activations and of gradients over the box.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from papers.posthoc.milp_model import Program, Variables
from reticent.core.arrays import Array

Bits = npt.NDArray[np.bool_]

_WIDER = 2.0**-40  # of the magnitudes in a range: far above its rounding
_NUMBERS = 2**20


@dataclass(frozen=True, eq=False)
class Chain:
    """Linear layers with ReLU between them, and the functionals whose gradients measure the output.

    Attributes:
        weights, biases: one per linear layer.
        functionals: of the last hidden layer, shape (k, width), one of each pair {a, -a}.
    """

    weights: list[Array]
    biases: list[Array]
    functionals: Array

    @property
    def hidden(self) -> list[int]:
        """Widths of the hidden layers."""
        return [len(weight) for weight in self.weights[:-1]]

    def pre_activations(self, points: Array) -> Array:
        """Of every hidden neuron, shape (n, hidden neurons)."""
        values, parts = points, [np.zeros((len(points), 0))]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            parts.append(values @ weight.T + bias)
            values = np.maximum(parts[-1], 0.0)
        return np.concatenate(parts, axis=1)

    def norms(self, patterns: Bits) -> Array:
        """What the Jacobian of each pattern measures: (n, hidden neurons) to (n,)."""
        gradients = np.broadcast_to(self.functionals, (len(patterns), *self.functionals.shape))
        splits = np.split(patterns, np.cumsum(self.hidden)[:-1], axis=1) if self.hidden else []
        for weight, on in zip(self.weights[-2::-1], splits[::-1], strict=True):
            gradients = (gradients * on[:, None]) @ weight
        return np.asarray(np.abs(gradients).sum(axis=2).max(axis=1))


class BoxedChain:
    """A chain over the closed box [lower, upper], with the range of every hidden neuron there.

    Ranges are intervals, cut by linear bounds substituted back to the box, and wider than their
    rounding.
    """

    def __init__(self, chain: Chain, lower: Array, upper: Array) -> None:
        self.chain, self.lower, self.upper = chain, lower, upper
        self.ranges: list[tuple[Array, Array]] = []
        self.on: list[Bits] = []
        self.free: list[Bits] = []
        low, high = lower, upper
        for index in range(len(chain.hidden)):
            below, above = self._range(index, low, high)
            self.ranges.append((below, above))
            self.on.append(below > 0)
            self.free.append((below <= 0) & (above >= 0))
            low, high = np.maximum(below, 0.0), np.maximum(above, 0.0)

    def _range(self, index: int, low: Array, high: Array) -> tuple[Array, Array]:
        weight, bias = self.chain.weights[index], self.chain.biases[index]
        positive, negative = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
        wider = _WIDER * (np.abs(weight) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(bias))
        below, above = (
            positive @ low + negative @ high + bias,
            positive @ high + negative @ low + bias,
        )
        if index > 0:
            above = np.minimum(above, self._largest(index, 1.0))
            below = np.maximum(below, -self._largest(index, -1.0))
        return below - wider, np.maximum(above, below) + wider

    def _largest(self, index: int, sign: float) -> Array:
        """Upper bounds on ``sign`` times the pre-activations of a layer: chords above ReLU,
        lines through 0 below it.
        """
        rows, offsets = sign * self.chain.weights[index], sign * self.chain.biases[index]
        for below in range(index - 1, -1, -1):
            low, high = self.ranges[below]
            on, free = self.on[below], self.free[below]
            slope = np.where(free, high / np.where(high > low, high - low, 1.0), on)
            line = np.where(free, high > -low, on)
            positive, negative = np.maximum(rows, 0.0), np.minimum(rows, 0.0)
            offsets = offsets - positive @ np.where(free, slope * low, 0.0)
            rows = positive * slope + negative * line
            offsets = offsets + rows @ self.chain.biases[below]
            rows = rows @ self.chain.weights[below]
        return np.asarray(
            np.maximum(rows, 0.0) @ self.upper + np.minimum(rows, 0.0) @ self.lower + offsets
        )

    def bounds_along(self, signs: Array, functionals: Array) -> Array:
        """Upper bounds on a . J t for functionals a and directions t over all slopes, shape
        (functionals, directions).

        The smaller of two: gradients of a as intervals carried back to the inputs, and derivatives
        along t carried forward to the last hidden layer.

        Args:
            signs: directions, shape (d, inputs).
            functionals: some of ``chain.functionals``, shape (f, width).
        """
        low, high = self._gradients(functionals)[-1]
        backward = high @ np.maximum(signs, 0.0).T + low @ np.minimum(signs, 0.0).T
        if not self.ranges:
            return np.asarray(backward)
        below = above = signs
        for weight, on, free in zip(self.chain.weights[:-1], self.on, self.free, strict=True):
            before = (below, above)
            positive, negative = np.maximum(weight, 0.0).T, np.minimum(weight, 0.0).T
            first, last = below @ positive + above @ negative, above @ positive + below @ negative
            below, above = behind(first, last, on, free)
        free = self.free[-1]
        joined = (functionals * self.on[-1]) @ self.chain.weights[-2]
        forward = np.maximum(joined, 0.0) @ before[1].T + np.minimum(joined, 0.0) @ before[0].T
        forward += (np.maximum(functionals, 0.0) * free) @ above.T + (
            np.minimum(functionals, 0.0) * free
        ) @ below.T
        return np.minimum(backward, forward)

    def norm_bounds(self, signs: Array) -> Array:
        """The largest of ``bounds_along`` per functional, shape (k,), in parts that fit in
        memory.
        """
        whole = self.chain.functionals
        at_once = max(1, _NUMBERS // len(signs))
        parts = (whole[start : start + at_once] for start in range(0, len(whole), at_once))
        return np.concatenate([self.bounds_along(signs, part).max(axis=1) for part in parts])

    def _gradients(self, functionals: Array) -> list[tuple[Array, Array]]:
        """Ranges of the gradients of ``functionals`` in front of each layer, from the last to
        the inputs.
        """
        ranges = [(functionals, functionals)]
        for weight, on, free in zip(
            self.chain.weights[-2::-1], self.on[::-1], self.free[::-1], strict=True
        ):
            low, high = behind(*ranges[-1], on, free)
            positive, negative = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
            ranges.append((low @ positive + high @ negative, high @ positive + low @ negative))
        return ranges

    def points(self) -> tuple[Program, Variables, list[Variables]]:
        """The program whose solutions are points of the box, each with a pattern that is consistent
        with it.

        Returns:
            The program, the variables of the point, and the binaries of each hidden layer.
        """
        program = Program()
        point = entering = program.variables(self.lower, self.upper)
        slopes: list[Variables] = []
        for index, (low, high) in enumerate(self.ranges):
            weight, bias = self.chain.weights[index], self.chain.biases[index]
            on, free = self.on[index], self.free[index]
            values = program.variables(low, high)
            program.rows(bias, bias, (values, 1.0), (entering, -weight))
            slope = program.variables(on, on | free, integer=True)
            slopes.append(slope)
            program.rows(-np.inf, 0.0, (values[free], 1.0), (slope[free], -high[free]))
            program.rows(low[free], np.inf, (values[free], 1.0), (slope[free], low[free]))
            if index + 1 < len(self.ranges):
                entering = program.variables(np.maximum(low, 0.0), np.maximum(high, 0.0))
                program.rows(0.0, 0.0, (entering[on], 1.0), (values[on], -1.0))
                program.rows(0.0, np.inf, (entering[free], 1.0), (values[free], -1.0))
                program.rows(-np.inf, 0.0, (entering[free], 1.0), (slope[free], -high[free]))
                program.rows(
                    -np.inf,
                    -low[free],
                    (entering[free], 1.0),
                    (values[free], -1.0),
                    (slope[free], -low[free]),
                )
        return program, point, slopes

    def gradient_norm(
        self, program: Program, slopes: list[Variables], functional: int, signs: Array
    ) -> Variables:
        """Variables whose sum is the l1 norm of a functional's gradient wherever that is attained
        along one of ``signs``.

        Args:
            program: from ``points``, with its ``slopes``.
            functional: row of ``chain.functionals``.
            signs: directions that are possible, shape (d, inputs); elsewhere the sum may be
                anything below the norm.
        """
        ranges = self._gradients(self.chain.functionals[functional])
        # The gradient in front of the last hidden layer is a constant; the same inequalities
        # describe its product.
        gradient = program.variables(*ranges[0])
        for index in range(len(self.ranges) - 1, -1, -1):
            (low, high), following = (
                ranges[len(self.ranges) - 1 - index],
                ranges[len(self.ranges) - index],
            )
            on, free, slope = self.on[index], self.free[index], slopes[index]
            product = program.variables(*behind(low, high, on, free))
            program.rows(0.0, 0.0, (product[on], 1.0), (gradient[on], -1.0))
            low, high = low[free], high[free]
            program.rows(-np.inf, 0.0, (product[free], 1.0), (slope[free], -high))
            program.rows(0.0, np.inf, (product[free], 1.0), (slope[free], -low))
            program.rows(
                -np.inf, -low, (product[free], 1.0), (gradient[free], -1.0), (slope[free], -low)
            )
            program.rows(
                -high, np.inf, (product[free], 1.0), (gradient[free], -1.0), (slope[free], -high)
            )
            gradient = program.variables(*following)
            program.rows(0.0, 0.0, (gradient, 1.0), (product, -self.chain.weights[index].T))
        low, high = ranges[-1]
        magnitude = program.variables(np.zeros(len(low)), np.maximum(np.maximum(-low, high), 0.0))
        sign = program.variables(signs.min(axis=0) > 0, signs.max(axis=0) > 0, integer=True)
        # Where the sign is 1 the magnitude is at most the entry, elsewhere at most its negative.
        program.rows(-np.inf, -2 * low, (magnitude, 1.0), (gradient, -1.0), (sign, -2 * low))
        program.rows(-np.inf, 0.0, (magnitude, 1.0), (gradient, 1.0), (sign, -2 * high))
        return magnitude


def behind(low: Array, high: Array, on: Bits, free: Bits) -> tuple[Array, Array]:
    """Range of a gradient behind neurons, given its range in front of them."""
    return on * low + free * np.minimum(low, 0.0), on * high + free * np.maximum(high, 0.0)
