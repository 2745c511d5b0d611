"""The largest sum of |J| over the entries of a Jacobian's row, for l-infinity balls.

The range of each entry comes from linear relaxation, for each functional. The bound is isotone.

A functional's gradient is carried from the last hidden layer to the inputs. Unstable neurons of the
last layer have slopes in [0, 1]. In front of it, the product of a slope and a gradient lies between
the chords of min(0, g) and max(0, g) over the range of the gradient g, and that range is exact for
all that these lines allow. So it is for each entry of J. The chord of |J| over it is above it, and
linear. Proofs: docs/certificates.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.grids.rounding import float_error, fractions, grid_unit, quotient, rounded_up
from reticent.lipschitz.directional import Mask, rescaled

MOST_FUNCTIONALS = 64
"""Each may cost a pass of its own. With more, the bound for all directions at once is left."""

_WORKING_NUMBERS = 2**16
_TINY = 2.0**-400
_COARSER = 2.0**5
"""Grid step of ranges over that of sums. There are so many that exact arithmetic would decide some
otherwise. A range of one sign loses nothing, since its chord is |J|.
"""

Range = tuple[Array, Array]
Places = npt.NDArray[np.intp]
Common = dict[int, tuple[Places, Array, Array]]


@dataclass(frozen=True, eq=False)
class EntryChords:
    """Sums of chords of a ReLU chain's Jacobian, for batches of regions.

    Attributes:
        matrices: the matrices of the linear layers in front of a ReLU, first to last, each at most
            1.
        rows: the functionals, shape (k, outputs), whole numbers.
        last: the matrix of the last layer, at most 1, shape (outputs, last width).
        scales: public bounds on the sum of magnitudes added up for an entry of the gradient in
            front of each layer, first to last, and for a sum over all entries.
        unit: the real value of one in scaled terms, a power of two.
    """

    matrices: tuple[Array, ...]
    rows: Array
    last: Array
    scales: tuple[float, ...]
    unit: float

    @classmethod
    def build(cls, rows: Array, matrices: list[Array]) -> EntryChords:
        """Return the sums for a network with at least one hidden layer.

        Args:
            rows: the functionals, shape (k, outputs).
            matrices: the matrices of all linear layers.

        Raises:
            CertificationFailed: the product of the layers' magnitudes leaves float64.
        """
        scaled, unit = rescaled(matrices)
        scales: list[float] = []
        most = np.abs(rows) @ np.abs(scaled[-1])
        for matrix in reversed(scaled[:-1]):
            most = most @ np.abs(matrix)
            # Every layer on the way adds at most this much. Ranges are rounded outward.
            scales.append((len(matrices) + 2.0) * float(most.max(initial=0.0)) + _TINY)
            most = (1.0 + 2.0**-16) * most + 2.0**-16 * scales[-1]
        total = (len(matrices) + 5.0) * float(most.sum(axis=1).max(initial=0.0)) + _TINY
        return cls(scaled[:-1], rows, scaled[-1], (*reversed(scales), total), unit)

    def __call__(self, on: list[Mask], unstable: list[Mask]) -> Array:
        """Return the sum of chords of each region and functional, shape (n, k).

        Args:
            on, unstable: the state of every neuron of each hidden layer, shape (n, width) each.
        """
        shape = len(on[0]), len(self.rows)
        regions, rows = np.indices(shape).reshape(2, -1)
        return self._summed(regions, rows, on, unstable).reshape(shape)

    def capped(self, on: list[Mask], unstable: list[Mask], cap: Array) -> Array:
        """Return the largest sum of each region, or its ``cap`` where that is smaller, shape (n,).

        Sums that cannot change the answer are not computed.
        """
        found = cap.copy()
        regions = np.flatnonzero(self.floor(on, unstable).max(axis=1) < cap)
        if not len(regions):
            return found
        on, unstable = [part[regions] for part in on], [part[regions] for part in unstable]
        most, every = self._screen(on, unstable), np.arange(len(regions))
        first = most.argmax(axis=1)
        best = self._summed(every, first, on, unstable)
        most[every, first] = -np.inf
        left, rows = np.nonzero(most > np.where(best < cap[regions], best, np.inf)[:, None])
        np.maximum.at(best, left, self._summed(left, rows, on, unstable))
        found[regions] = np.minimum(best, cap[regions])
        return found

    def _summed(self, regions: Places, rows: Places, on: list[Mask], unstable: list[Mask]) -> Array:
        """Return the sums of pairs of a region and a functional, in order of regions."""
        found = np.empty(len(regions))
        common: Common = {}
        before = regions[:0]
        for start in range(0, len(regions), self._pairs):
            part = slice(start, start + self._pairs)
            some = regions[part]
            if not np.array_equal(some, before):
                common, before = {}, some
            state = [each[some] for each in on], [each[some] for each in unstable]
            found[part] = self._sums(rows[part], *state, common)
        return found * self.unit

    @property
    def _pairs(self) -> int:
        """Pairs of a region and a functional at once."""
        most = max(2 * part.shape[1] * max(part.shape) for part in self.matrices)
        return max(1, _WORKING_NUMBERS // int(most))

    def _screen(self, on: list[Mask], free: list[Mask]) -> Array:
        """Return a number above each sum, shape (n, k), by which nothing but time is won.

        Lines of slope 1/2 give ranges of the entries for all functionals in one pass.
        """
        count = max(1, _WORKING_NUMBERS // max(part.size for part in self.matrices))
        if len(on[0]) > count:
            parts = [slice(start, start + count) for start in range(0, len(on[0]), count)]
            return np.concatenate(
                [self._screen([m[p] for m in on], [m[p] for m in free]) for p in parts]
            )
        gradient = self.rows @ self.last
        slopes = [(part + 0.5 * loose)[:, None] for part, loose in zip(on, free, strict=True)]
        middle, spread = gradient * slopes[-1], np.abs(gradient) * (0.5 * free[-1])[:, None]
        spreads = [spread]
        ranges: list[Range] = []
        low, high = middle - spread, middle + spread
        for layer in range(len(self.matrices) - 1, 0, -1):
            matrix, loose = self.matrices[layer], free[layer - 1][:, None]
            center, reach = (low + high) @ (0.5 * matrix), (high - low) @ (0.5 * np.abs(matrix))
            low, high = center - reach, center + reach
            ranges.insert(0, (low, high))
            spreads.insert(0, np.maximum(np.abs(low), np.abs(high)) * (0.5 * loose))
            kept = on[layer - 1][:, None]
            low = np.where(loose, np.minimum(low, 0), low * kept)
            high = np.where(loose, np.maximum(high, 0), high * kept)
        # From one layer to the next only neurons that are not off matter, from the last one only
        # unstable ones.
        pass_on = [(part | loose).any(axis=0) for part, loose in zip(on, free, strict=True)]
        some = [np.flatnonzero(part) for part in (*pass_on[:-1], free[-1].any(axis=0))]
        rows, center = self.matrices[0][some[0]][None], middle
        reach = spreads[0][..., some[0]] @ np.abs(rows)
        for layer in range(1, len(spreads)):
            here, before = some[layer], some[layer - 1]
            part = self.matrices[layer][np.ix_(here, before)]
            rows = (part * slopes[layer - 1][..., before]) @ rows
            reach = reach + spreads[layer][..., here] @ np.abs(rows)
        for layer in range(len(spreads) - 1, 0, -1):
            center = (center @ self.matrices[layer]) * slopes[layer - 1]
        center = center @ self.matrices[0]
        pairs = len(on[0]) * len(gradient)
        slope, constant = chords(
            *(end.reshape(pairs, -1) for end in (center - reach, center + reach))
        )
        sums = largest(
            (slope @ self.matrices[0].T)[:, None],
            np.tile(gradient, (len(on[0]), 1)),
            list(self.matrices),
            [(one.reshape(pairs, -1), other.reshape(pairs, -1)) for one, other in ranges],
            [np.repeat(part, len(gradient), axis=0) for part in on],
            [np.repeat(part, len(gradient), axis=0) for part in free],
        )
        sums = (sums[:, 0] + constant).reshape(len(on[0]), -1)
        return np.asarray((sums + 2.0**-20 * self.scales[-1]) * self.unit)

    def floor(self, on: list[Mask], free: list[Mask]) -> Array:
        """Return a number below each sum, shape (n, k), for a fraction of its time.

        Gradients behind inner layers stay at their middle values. The products of slopes and
        gradients in front of them take all that the chords allow there.
        """
        gradient = self.rows @ self.last
        middle = gradient * (on[-1] + 0.5 * free[-1])[:, None]
        spread = np.abs(gradient) * (0.5 * free[-1])[:, None]
        for layer in range(len(self.matrices) - 1, 0, -1):
            center, reach = _through(middle, spread, self.matrices[layer])
            low, high = np.minimum(center - reach, 0), np.maximum(center + reach, 0)
            loose = free[layer - 1][:, None]
            middle = center * (on[layer - 1][:, None] + 0.5 * loose)
            spread = (quotient(high, high - low) * (center - low) - 0.5 * center) * loose
        center, reach = _through(middle, spread, self.matrices[0])
        slope, constant = chords(center - reach, center + reach)
        through = slope @ self.matrices[0].T
        sums = (through * middle + np.abs(through) * spread).sum(axis=-1) + constant
        return np.asarray((sums - 2.0**-20 * self.scales[-1]) * self.unit)

    def _sums(self, k: Places, on: list[Mask], free: list[Mask], common: Common) -> Array:
        """Return the sum for each pair of a functional and a region, rounded up, shape (n,).

        ``common`` keeps what all functionals of the same regions have in common.
        """
        ranges: list[Range] = []
        for layer in range(len(self.matrices) - 1, -1, -1):
            columns = self.matrices[layer].T
            ends = self._rounded(layer, k, columns, ranges, on, free, common)
            ranges.insert(0, (-ends[:, len(columns) :], ends[:, : len(columns)]))
        return self._rounded(-1, k, None, ranges, on, free)[:, 0]

    def _rounded(
        self,
        scale: int,
        k: Places,
        columns: Array | None,
        ranges: list[Range],
        on: list[Mask],
        free: list[Mask],
        common: Common | None = None,
    ) -> Array:
        """Return the largest values over all that the states and the ranges allow, rounded up.

        They are those of ``columns`` and behind them of their opposites, shape (n, 2 columns), or
        without columns that of the sum of chords, shape (n, 1).
        """

        def value(pairs: slice, cast: Callable[[Array], Any], rows: Array | None) -> Any:
            gradient = cast(self.rows[k[pairs]]) @ cast(self.last)
            matrices = [cast(part) for part in self.matrices]
            inner = [(cast(low[pairs]), cast(high[pairs])) for low, high in ranges]
            states = [part[pairs] for part in on], [part[pairs] for part in free]
            if rows is not None:
                kept = common if rows is columns else None
                return largest(cast(rows)[None], gradient, matrices, inner, *states, kept)
            slope, constant = chords(*inner[0])
            through = (slope @ matrices[0].T)[:, None, :]
            return largest(through, gradient, matrices, inner[1:], *states) + constant[:, None]

        def at(index: tuple[int, ...], cast: Callable[[Array], Any]) -> Any:
            pair, row = index
            if columns is None:
                return value(slice(pair, pair + 1), cast, None)[0, 0]
            sign, column = (1.0, row) if row < len(columns) else (-1.0, row - len(columns))
            return value(slice(pair, pair + 1), cast, sign * columns[[column]])[0, 0]

        def closer(index: tuple[int, ...]) -> tuple[np.longdouble, float]:
            return at(index, np.longdouble), float_error(terms, size, "longdouble") + _TINY

        size = self.scales[scale]
        terms = 4 * sum(sum(part.shape) for part in self.matrices) + 2 * len(self.last)
        values = value(slice(None), np.asarray, columns)
        error = float_error(terms, size) + _TINY
        unit = grid_unit(size) * (1.0 if columns is None else _COARSER)
        return rounded_up(values, error, unit, partial(at, cast=fractions), closer)


def largest(
    rows: Array,
    gradient: Array,
    matrices: list[Array],
    ranges: list[Range],
    on: list[Mask],
    free: list[Mask],
    kept: Common | None = None,
) -> Array:
    """Return the largest rows . v over all products v of slopes and gradients that the lines allow,
    shape (n, rows), or of the rows and behind them of their opposites, shape (n, 2 rows).

    Args:
        rows: coefficients of the products of one hidden layer, shape (1 or n, rows, width).
        gradient: the gradient behind the last hidden layer, shape (n, last width).
        matrices: the matrices of the hidden layers, first to last.
        ranges: the range of the gradient behind each hidden layer from that one on, but for the
            last, shape (n, width) each.
        on, free: the neurons that are on, and those that are unstable, of every hidden layer.
        kept: products that do not depend on gradient and ranges, by layer, kept for another call
            with the same rows and states. Given where the opposites are asked for, which cost no
            more products of matrices.
    """
    signs = (1,) if kept is None else (1, -1)
    # A float among fractions would turn all that follows into floating point.
    cast: Any = fractions if rows.dtype == object else np.asarray
    # Behind the last hidden layer gradients are known.
    last = np.flatnonzero(free[-1].any(axis=0))
    known = cast(on[-1] + 0.5 * free[-1]) * gradient
    half = (cast(0.5 * free[-1]) * np.abs(gradient))[:, last, None]
    if not ranges:
        steady = (rows @ known[:, :, None])[..., 0]
        spread = (np.abs(rows[..., last]) @ half)[..., 0]
        return np.concatenate([spread + sign * steady for sign in signs], axis=1)
    layer = len(matrices) - 1 - len(ranges)
    low, high = np.minimum(ranges[0][0], 0), np.maximum(ranges[0][1], 0)
    behind = matrices[layer + 1].T
    into = behind[:, last] if len(ranges) == 1 else behind
    middle = cast(on[layer] + 0.5 * free[layer])
    if kept and layer in kept:
        some, size, forth = kept[layer]
    else:
        some = np.flatnonzero(free[layer].any(axis=0))  # few, where regions are small
        pass_on = np.flatnonzero((on[layer] | free[layer]).any(axis=0))
        size = np.abs(rows[..., some])
        forth = (rows[..., pass_on] * middle[:, None, pass_on]) @ into[pass_on]
        if kept is not None:
            kept[layer] = some, size, forth
    share = quotient(high, high - low)
    # An upper line has the slope `share`, a lower one 1 - share.
    constant = (size @ (-share * low * free[layer])[:, some, None])[..., 0]
    tilt = share * free[layer] - cast(0.5 * free[layer])
    aside = (size * tilt[:, None, some]) @ into[some]
    if len(ranges) > 1:
        parts = [
            constant + largest(aside + sign * forth, gradient, matrices, ranges[1:], on, free)
            for sign in signs
        ]
    else:
        back = known @ behind.T
        constant = constant + (size @ (tilt * back)[:, some, None])[..., 0]
        steady = (rows @ (middle * back)[:, :, None])[..., 0]
        parts = [
            constant + sign * steady + (np.abs(aside + sign * forth) @ half)[..., 0]
            for sign in signs
        ]
    return np.concatenate(parts, axis=1)


def _through(middle: Array, spread: Array, matrix: Array) -> tuple[Array, Array]:
    """Return middles and half widths of the ranges of ``matrix`` times vectors in these boxes."""
    shape, width = (*middle.shape[:-1], matrix.shape[1]), matrix.shape[0]
    flat = (middle.reshape(-1, width) @ matrix, spread.reshape(-1, width) @ np.abs(matrix))
    return flat[0].reshape(shape), flat[1].reshape(shape)


def chords(low: Array, high: Array) -> tuple[Array, Array]:
    """Return the slopes of the chords of |J| over these ranges, shape (n, inputs), and the sum of
    their values at 0, shape (n,).
    """
    ends = np.abs(low), np.abs(high)
    slope = np.maximum(np.minimum(quotient(ends[1] - ends[0], high - low), 1), -1)
    return slope, (ends[1] - slope * high).sum(axis=-1)
