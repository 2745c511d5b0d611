"""ReLU chains as activation patterns: which are possible, and what the Jacobian of one measures.

A pattern says of every hidden neuron whether it is on or off. Where it holds the network is affine,
and its Jacobian measures max over functionals a and directions t of a . J t. A *partial* pattern
fixes some neurons. For it this module gives ranges of the others over a box, linear inequalities
that every consistent point satisfies, and upper bounds on a . J t for all pairs (a, t) at once.

All of it is floating point with stated errors: ``neuron_errors`` for pre-activations and anything
derived from them, ``value_error`` for a . J t. ``exact_value`` and ``exact_inequalities`` are the
same in rational arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from papers.posthoc.exact.programs import Inequalities
from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed, UnsupportedNetwork, UnsupportedNorm
from reticent.core.norms import sign_patterns
from reticent.core.regions import Box
from reticent.lipschitz.bounds import Functionals, Output
from reticent.lipschitz.layered import MAX_INPUTS
from reticent.networks.network import Network

Signs = npt.NDArray[np.int8]

_ERROR_PER_TERM = 2.0**-48  # 32 units in the last place for each term of each sum on the way


@dataclass(frozen=True, eq=False)
class Ranges:
    """Ranges that partial patterns leave open over a box, one row per pattern.

    Attributes:
        on: 1.0 where a neuron is certainly on, because it is fixed or is on in the whole box.
        free: 1.0 where it can be either.
        lower, upper: range of pre-activations among consistent points, errors included, shape
            (c, hidden).
        possible: False where some fixed neuron cannot be on its side at all, shape (c,).
    """

    on: Array
    free: Array
    lower: Array
    upper: Array
    possible: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs (functional, direction) that are still looked at, a product of two sets of
    indices.
    """

    functionals: npt.NDArray[np.int64]
    directions: npt.NDArray[np.int64]


class ReluChain:
    """A ReLU chain prepared for pattern search over boxes inside ``domain``.

    Args:
        network: linear layers with ReLU between them.
        domain: the public box of its inputs.
        output: l1 (up to 12 outputs), linf or "spread".

    Raises:
        UnsupportedNetwork: the network is no such chain.
        UnsupportedNorm: the output measure has no finite set of functionals, or inputs are more
            than 14.

    Attributes:
        weights, biases: the matrices and biases of the linear layers.
        measured: functionals a of the output, one of each pair {a, -a}, shape (k, outputs).
        functionals: the same times the last layer, shape (k, last hidden).
        directions: one t of each pair {t, -t}, shape (2**(n - 1), n).
        hidden: widths of the hidden layers.
        starts: index of the first neuron of each hidden layer.
    """

    def __init__(self, network: Network, *, domain: Box, output: Output) -> None:
        if not network.is_relu_chain():
            raise UnsupportedNetwork(
                "exact search: expected linear layers with ReLU between them; use the interval "
                "bound"
            )
        if network.input_dimension > MAX_INPUTS:
            raise UnsupportedNorm(
                f"exact search: {network.input_dimension} inputs, expected at most "
                f"{MAX_INPUTS}; use the interval bound"
            )
        measured = Functionals.of(output, network.output_dimension)
        if measured.combine != "max":
            raise UnsupportedNorm(
                f"exact search: output={output!s} of {network.output_dimension} outputs; "
                "expected linf, spread, or l1 of up to 12"
            )
        linear = network.linear_layers()
        self.weights = [layer.dense() for layer in linear]
        self.biases = [np.asarray(layer.bias, dtype=np.float64) for layer in linear]
        self.measured = measured.rows
        self.hidden = [len(weight) for weight in self.weights[:-1]]
        self.starts = [int(start) for start in np.cumsum([0, *self.hidden])]
        self.directions = sign_patterns(network.input_dimension, up_to_sign=True)
        self.functionals = measured.rows @ self.weights[-1]
        self._along = self.directions @ self.weights[0].T if self.hidden else self.directions
        self._positive = [np.maximum(weight, 0.0) for weight in self.weights]
        self._negative = [np.minimum(weight, 0.0) for weight in self.weights]
        magnitude = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
        errors, gain, terms = [], np.ones(network.input_dimension), 0
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            magnitude = np.abs(weight) @ magnitude + np.abs(bias)
            terms += weight.shape[1] + 8
            errors.append(_ERROR_PER_TERM * terms * magnitude + 2.0**-1000)
            gain = np.abs(weight) @ gain
        self.neuron_errors = np.concatenate(errors) if errors else np.zeros(0)
        largest = float((np.abs(measured.rows) @ np.abs(self.weights[-1]) @ gain).max(initial=0.0))
        terms += sum(self.weights[-1].shape) + 8
        self.value_error = float(_ERROR_PER_TERM * terms * largest)
        if not np.isfinite(largest) or not np.isfinite(self.neuron_errors).all():
            raise CertificationFailed(
                "the ranges of this network outgrow float64; expected smaller weights or a "
                "smaller domain"
            )

    @property
    def all_pairs(self) -> Pairs:
        """The pairs of every functional with every direction."""
        return Pairs(np.arange(len(self.functionals)), np.arange(len(self.directions)))

    def layer(self, index: int) -> slice:
        """Return the neurons of hidden layer ``index``."""
        return slice(self.starts[index], self.starts[index + 1])

    def pre_activations(self, points: Array) -> Array:
        """Return pre-activations of all hidden neurons at ``points``, shape (k, n) to
        (k, hidden).
        """
        values, found = points, []
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            found.append(values @ weight.T + bias)
            values = np.maximum(found[-1], 0.0)
        return np.concatenate(found, axis=1) if found else np.zeros((len(points), 0))

    def ranges(self, fixed: Signs, lower: Array, upper: Array) -> Ranges:
        """Return the ranges that partial patterns leave open over the box [lower, upper].

        Args:
            fixed: 1 on, -1 off, 0 either, shape (c, hidden).
            lower, upper: ends of the box, shape (n,).
        """
        c = len(fixed)
        low, high = np.empty((c, self.starts[-1])), np.empty((c, self.starts[-1]))
        on, free = np.zeros(low.shape), np.zeros(low.shape)
        possible = np.ones(c, dtype=bool)
        relaxed: list[tuple[Array, Array, Array]] = []
        center, reach = 0.5 * (lower + upper), 0.5 * (upper - lower)
        for index in range(len(self.hidden)):
            part = self.layer(index)
            error = self.neuron_errors[part]
            if index == 0:
                middle = self.weights[0] @ center + self.biases[0]
                spread = np.abs(self.weights[0]) @ reach
                below, above = (middle - spread)[None], (middle + spread)[None]
            else:
                below, above = self._deep_range(index, relaxed, low, high, center, reach)
            here = fixed[:, part]
            below, above = below - error, above + error
            possible &= ~(((here > 0) & (above < 0)) | ((here < 0) & (below > 0))).any(axis=1)
            # At a kink both slopes are allowed, so a neuron is certain only if 0 is outside its
            # range.
            low[:, part] = np.where(here > 0, np.maximum(below, 0.0), below)
            high[:, part] = np.where(here < 0, np.minimum(above, 0.0), above)
            on[:, part] = (here > 0) | ((here == 0) & (below > 0))
            free[:, part] = (here == 0) & (below <= 0) & (above >= 0)
            relaxed.append(_relaxation(on[:, part], free[:, part], low[:, part], high[:, part]))
        return Ranges(on, free, low, high, possible)

    def _deep_range(
        self,
        index: int,
        relaxed: list[tuple[Array, Array, Array]],
        low: Array,
        high: Array,
        center: Array,
        reach: Array,
    ) -> tuple[Array, Array]:
        """Return the range of a deeper layer, the better of intervals and of linear bounds
        substituted back to the box.
        """
        part = self.layer(index - 1)
        first, last = np.maximum(low[:, part], 0.0), np.maximum(high[:, part], 0.0)
        positive, negative, bias = (
            self._positive[index].T,
            self._negative[index].T,
            self.biases[index],
        )
        below = first @ positive + last @ negative + bias
        above = last @ positive + first @ negative + bias
        rows, offsets = self._substituted(index, relaxed, upper=True)
        above = np.minimum(above, rows @ center + np.abs(rows) @ reach + offsets)
        rows, offsets = self._substituted(index, relaxed, upper=False)
        below = np.maximum(below, rows @ center - np.abs(rows) @ reach + offsets)
        return below, above

    def _substituted(
        self, index: int, relaxed: list[tuple[Array, Array, Array]], *, upper: bool
    ) -> tuple[Array, Array]:
        """Return linear bounds on the pre-activations of layer ``index`` in the inputs, of shapes
        (c, width, n) and (c, width).
        """
        rows = np.broadcast_to(
            self.weights[index], (len(relaxed[0][0]), *self.weights[index].shape)
        )
        offsets: Array = np.broadcast_to(self.biases[index], rows.shape[:2])
        for below in range(index - 1, -1, -1):
            steep, shift, flat = relaxed[below]
            take_upper = (rows > 0) == upper
            offsets = offsets + (np.where(take_upper, rows, 0.0) @ shift[:, :, None])[..., 0]
            rows = rows * np.where(take_upper, steep[:, None], flat[:, None])
            offsets = offsets + rows @ self.biases[below]
            rows = rows @ self.weights[below]
        return rows, offsets

    def inequalities(
        self, fixed: Signs, ranges: Ranges
    ) -> tuple[Inequalities, npt.NDArray[np.int64]]:
        """Return inequalities that every point consistent with ``fixed`` satisfies, given the
        ranges of a coarser pattern.

        Args:
            fixed: 1, -1 or 0, shape (hidden,).
            ranges: the ranges of one pattern that ``fixed`` refines.

        Returns:
            One inequality per fixed neuron, and the index of the neuron of each.
        """
        neurons = np.flatnonzero(fixed)
        rows, offsets = np.empty((len(neurons), self.weights[0].shape[1])), np.empty(len(neurons))
        relaxed = [
            _relaxation(ranges.on[:, p], ranges.free[:, p], ranges.lower[:, p], ranges.upper[:, p])
            for p in (self.layer(k) for k in range(len(self.hidden)))
        ]
        for index in range(len(self.hidden)):
            inside = (neurons >= self.starts[index]) & (neurons < self.starts[index + 1])
            if not inside.any():
                continue
            which, signs = neurons[inside] - self.starts[index], fixed[neurons[inside]]
            if index == 0:
                rows[inside], offsets[inside] = self.weights[0][which], self.biases[0][which]
            else:
                high, high_offset = self._substituted(index, relaxed, upper=True)
                low, low_offset = self._substituted(index, relaxed, upper=False)
                rows[inside] = np.where(signs[:, None] > 0, high[0, which], low[0, which])
                offsets[inside] = np.where(signs > 0, high_offset[0, which], low_offset[0, which])
            rows[inside] *= signs[:, None]
            offsets[inside] *= signs
        return Inequalities(rows, offsets, self.neuron_errors[neurons]), neurons

    def halves(self, ranges: Ranges, pairs: Pairs) -> tuple[Array, Array]:
        """Return two arrays h, k such that a . J t lies within (h +- k) / 2 for all whole patterns
        within each partial one.

        So (|h| + k) / 2 bounds |a . J t|, and (h + k) / 2, (h - k) / 2 bound a . J t. The range of
        each neuron's derivative along t is carried forward. The functionals are joined with the
        neurons of the last hidden layer that are on. An earlier neuron that reaches a functional
        through several of them is thus counted once, with its sign. All holds up to
        ``value_error``.

        Returns:
            Both of shape (c, functionals, directions).
        """
        functionals, directions = (
            self.functionals[pairs.functionals],
            self.directions[pairs.directions],
        )
        if not self.hidden:
            exact = 2.0 * (functionals @ directions.T)[None]
            return exact, np.zeros_like(exact)
        low = high = directions[None]
        before = (low, high)
        for index in range(len(self.hidden)):
            before = (low, high)
            if index == 0:
                low = high = self._along[pairs.directions][None]
            else:
                positive, negative = self._positive[index].T, self._negative[index].T
                low, high = low @ positive + high @ negative, high @ positive + low @ negative
            if index + 1 < len(self.hidden):
                part = self.layer(index)
                on, free = ranges.on[:, None, part], ranges.free[:, None, part]
                low, high = (
                    on * low + free * np.minimum(low, 0.0),
                    on * high + free * np.maximum(high, 0.0),
                )
        part = self.layer(len(self.hidden) - 1)
        joined = (functionals * ranges.on[:, None, part]) @ self.weights[-2]
        some = np.flatnonzero(ranges.free[:, part].any(axis=0))
        loose = functionals[:, some] * ranges.free[:, None, part][:, :, some]
        most, least = np.maximum(high[:, :, some], 0.0), np.minimum(low[:, :, some], 0.0)
        signed = joined @ np.swapaxes(before[1] + before[0], 1, 2) + loose @ np.swapaxes(
            most + least, 1, 2
        )
        spread = np.abs(loose) @ np.swapaxes(most - least, 1, 2)
        if len(self.hidden) > 1:
            spread += np.abs(joined) @ np.swapaxes(before[1] - before[0], 1, 2)
        return signed, spread

    def jacobians(self, patterns: Signs) -> Array:
        """Return the functionals' gradients under whole patterns, shape (k, hidden) to (k,
        functionals, n).
        """
        rows = self.functionals[None]
        for index in range(len(self.hidden) - 1, -1, -1):
            rows = (rows * (patterns[:, None, self.layer(index)] > 0)) @ self.weights[index]
        return np.asarray(np.broadcast_to(rows, (len(patterns), *rows.shape[1:])))

    def values(self, patterns: Signs) -> Array:
        """Return the measure of the Jacobian of each whole pattern, shape (k,), up to
        ``value_error``.
        """
        return np.asarray(np.abs(self.jacobians(patterns)).sum(axis=2).max(axis=1, initial=0.0))

    def certain_patterns(self, points: Array) -> tuple[Signs, npt.NDArray[np.bool_]]:
        """Return the pattern at each point, and True where rounding cannot have changed it."""
        values = self.pre_activations(points)
        patterns = np.where(values > 0, 1, -1).astype(np.int8)
        return patterns, np.asarray((np.abs(values) > self.neuron_errors).all(axis=1))

    def exact_value(self, pattern: Signs) -> Fraction:
        """Return the measure of the Jacobian of a whole pattern, in rational arithmetic."""
        weights = [_fractions(weight) for weight in self.weights]
        best = Fraction(0)
        # Multiply from the output side: functionals are whole numbers.
        for functional in self.measured:
            row = _times([Fraction(int(entry)) for entry in functional], weights[-1])
            for index in range(len(self.hidden) - 1, -1, -1):
                signs = pattern[self.layer(index)]
                row = [
                    entry if sign > 0 else Fraction(0)
                    for entry, sign in zip(row, signs, strict=True)
                ]
                row = _times(row, weights[index])
            best = max(best, sum((abs(entry) for entry in row), Fraction(0)))
        return best

    def exact_inequalities(self, pattern: Signs) -> tuple[list[list[Fraction]], list[Fraction]]:
        """Return the rows and offsets of ``cell`` in rational arithmetic."""
        rows: list[list[Fraction]] = []
        offsets: list[Fraction] = []
        n = self.weights[0].shape[1]
        matrix = [
            [Fraction(int(i == j)) for j in range(n + 1)] for i in range(n)
        ]  # the last column is the offset
        for index in range(len(self.hidden)):
            weight, bias = _fractions(self.weights[index]), _fractions(self.biases[index][None])[0]
            after = [_times(row, matrix) for row in weight]
            for row, shift in zip(after, bias, strict=True):
                row[-1] += shift
            signs = pattern[self.layer(index)]
            for row, sign in zip(after, signs, strict=True):
                rows.append([int(sign) * entry for entry in row[:-1]])
                offsets.append(int(sign) * row[-1])
            matrix = [
                row if sign > 0 else [Fraction(0)] * (n + 1)
                for row, sign in zip(after, signs, strict=True)
            ]
        return rows, offsets


def _relaxation(on: Array, free: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Return lines around ReLU on its range: upper slope, upper offset, lower slope (through 0).

    A free neuron has low <= 0 <= high.
    """
    width = np.where(free > 0, np.maximum(high, 0.0) - np.minimum(low, 0.0), 1.0)
    slope = np.where(width > 0, np.maximum(high, 0.0) / np.where(width > 0, width, 1.0), 1.0)
    steep = on + free * slope
    shift = free * slope * np.maximum(-low, 0.0)
    flat = on + free * (high > -low)
    return steep, shift, flat


def _fractions(values: Array) -> list[list[Fraction]]:
    return [[Fraction(float(entry)) for entry in row] for row in values]


def _times(row: list[Fraction], matrix: list[list[Fraction]]) -> list[Fraction]:
    """Return a row times a matrix. Entries that are 0 are skipped."""
    columns = len(matrix[0]) if matrix else 0
    total = [Fraction(0)] * columns
    for factor, line in zip(row, matrix, strict=True):
        if factor:
            total = [a + factor * b for a, b in zip(total, line, strict=True)]
    return total
