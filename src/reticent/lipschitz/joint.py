"""The largest derivative a . J t of a ReLU chain over *all* directions t of the unit ball and all
certified slopes at once. It is isotone, takes one pass backward, and serves any number of inputs.

A neuron carries w = d y, where y is its derivative along t and d its slope. Over all t of a ball y
fills [-R, R], and w lies between the lines y / 2 - R / 2 and y / 2 + R / 2, the chords of min(0, y)
and max(0, y). Their slope is the public number 1/2 whatever the region is, and R grows with the
region. Substituting the lines from the output back to t leaves a linear function of t, whose
maximum is a dual norm, and a constant. For l-infinity balls ``entries`` has a tighter one.
Proofs: docs/certificates.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.core.norms import Norm
from reticent.grids.rounding import float_error, fractions, grid_unit, rounded_up
from reticent.lipschitz.directional import Mask, rescaled
from reticent.lipschitz.relaxation import dual_norms

_WORKING_NUMBERS = 2**16
_TINY = 2.0**-400
"""Squares of smaller numbers count as nothing. Matrices are at most 1."""


@dataclass(frozen=True, eq=False)
class JointDerivatives:
    """Derivatives of functionals of a chain over all directions, for batches of regions.

    Attributes:
        matrices: the matrices of the linear layers in front of a ReLU, first to last, each at most
            1.
        rows: the functionals, shape (k, outputs), whole numbers.
        last: the matrix of the last layer, at most 1, shape (outputs, last width).
        norm: the norm of the ball of directions.
        first: the reach of each derivative behind the first layer, rounded up, shape (width,).
        scales: public bounds on the sum of magnitudes added up for a reach of each layer, and for a
            functional.
        unit: the real value of one in scaled terms, a power of two.
    """

    matrices: tuple[Array, ...]
    rows: Array
    last: Array
    norm: Norm
    first: Array
    scales: tuple[float, ...]
    unit: float

    @classmethod
    def build(cls, rows: Array, matrices: list[Array], norm: Norm) -> JointDerivatives:
        """Return the derivatives of a network with at least one hidden layer.

        Args:
            rows: the functionals, shape (k, outputs).
            matrices: the matrices of all linear layers.
            norm: the norm of the ball of directions.

        Raises:
            CertificationFailed: the product of the layers' magnitudes leaves float64.
        """
        scaled, unit = rescaled(matrices)
        magnitudes = [np.abs(matrix) for matrix in scaled[:-1]]
        magnitudes.append(np.abs(rows) @ np.abs(scaled[-1]))
        most: list[Array] = []
        for layer, magnitude in enumerate(magnitudes):
            through, loss = magnitude, np.zeros(len(magnitude))
            for before in range(layer - 1, -1, -1):
                loss += 0.5 * (through @ most[before])
                through = through @ magnitudes[before]
            reach = loss + dual_norms(through, norm)
            # Reaches are rounded up by as much for small neurons as for large ones.
            step = 2.0**-24 * float(reach.max(initial=0.0))
            most.append((1.0 + 2.0**-16) * reach + step + _TINY)
        scales = tuple(float(reach.max(initial=0.0)) for reach in most)
        built = cls(scaled[:-1], rows, scaled[-1], norm, np.zeros(0), scales, unit)
        return replace(built, first=built._rounded(0, [], [], [])[0])

    def __call__(self, on: list[Mask], unstable: list[Mask]) -> Array:
        """Return the largest a . J t for each functional, rounded up, shape (n, k).

        Args:
            on, unstable: the state of every neuron of each hidden layer, shape (n, width) each.
        """
        widest = max(*map(len, self.matrices), self.matrices[0].shape[1])
        most = max(len(self.rows), *map(len, self.matrices))
        step = max(1, _WORKING_NUMBERS // (most * widest))
        parts = [
            self._over(
                [part[start : start + step] for part in on],
                [part[start : start + step] for part in unstable],
            )
            for start in range(0, len(on[0]), step)
        ]
        return np.concatenate(parts) * self.unit

    def _over(self, on: list[Mask], unstable: list[Mask]) -> Array:
        count = len(on[0])
        reaches = [np.broadcast_to(self.first, (count, len(self.first)))]
        for layer in range(1, len(self.matrices)):
            reaches.append(self._rounded(layer, reaches, on, unstable))
        value = self._rounded(len(self.matrices), reaches, on, unstable)
        silent = np.zeros(count, dtype=np.bool_)
        for layer_on, layer_free in zip(on, unstable, strict=True):
            silent |= ~(layer_on | layer_free).any(axis=1)
        return np.where(silent[:, None], 0.0, value)

    def _rounded(self, layer: int, reaches: list[Array], on: list[Mask], free: list[Mask]) -> Array:
        """Return the reaches of a layer, or the functionals' largest values behind the last,
        rounded up, shape (n, k).

        They cover everything that the states and reaches of the layers in front allow. Neurons that
        no region leaves unstable need no reach and get 0.
        """
        inner = layer < len(self.matrices)
        rows = self.matrices[layer] if inner else self.rows @ self.last
        asked = np.arange(len(rows))
        if inner and free:
            asked = np.flatnonzero(free[layer].any(axis=0))
            rows = rows[asked]
        before = self.matrices[:layer]
        values = largest(rows[None], before, reaches, on, free, self.norm)
        terms = 2 * sum(matrix.shape[1] for matrix in before) + 2 * rows.shape[1] + len(self.last)

        def at(index: tuple[int, ...], cast: Callable[[Array], Any]) -> Any:
            point, row = slice(index[0], index[0] + 1), slice(index[1], index[1] + 1)
            exact = cast(rows[row]) if inner else cast(self.rows[row]) @ cast(self.last)
            return largest(
                exact[None],
                tuple(cast(matrix) for matrix in before),
                [cast(reach[point]) for reach in reaches],
                [part[point] for part in on[:layer]],
                [part[point] for part in free[:layer]],
                self.norm,
            )[0, 0]

        def closer(index: tuple[int, ...]) -> tuple[np.longdouble, float]:
            return at(index, np.longdouble), float_error(terms, scale, "longdouble") + _TINY

        scale, exactly = self.scales[layer], partial(at, cast=fractions)
        error = float_error(terms, scale) + _TINY
        found = np.zeros((len(values), len(self.matrices[layer]) if inner else len(rows)))
        found[:, asked] = rounded_up(values, error, grid_unit(scale), exactly, closer)
        return found


def largest(
    rows: Array,
    matrices: tuple[Array, ...],
    reaches: list[Array],
    on: list[Mask],
    free: list[Mask],
    norm: Norm,
) -> Array:
    """Return the largest rows . w over all directions and all w between the lines of their neurons,
    shape (n, k).

    Args:
        rows: shape (1 or n, k, width of the last of these layers).
        matrices: the matrices of these layers, first to last. Without any, rows act on the
            directions themselves.
        reaches: the reach of each derivative, shape (n, width) each.
        on, free: the neurons that are on, and those that are unstable.
        norm: the norm of the ball of directions.
    """
    loss: Any = 0
    for layer in range(len(matrices) - 1, -1, -1):
        # A float among fractions would turn all that follows into floating point.
        cast: Any = fractions if rows.dtype == object else np.asarray
        some = np.flatnonzero(free[layer].any(axis=0))
        half = (reaches[layer] * cast(0.5 * free[layer]))[:, some, None]
        loss = loss + (np.abs(rows[..., some]) @ half)[..., 0]
        some = np.flatnonzero((on[layer] | free[layer]).any(axis=0))
        slope = cast(on[layer] + 0.5 * free[layer])[:, None, some]
        rows = (rows[..., some] * slope) @ matrices[layer][some]
    return np.asarray(dual_norms(rows, norm) + loss)
