"""Scores of a row that are 1-Lipschitz in its protected attributes and arbitrary in the others,
computed in whole numbers.

A chain of affine maps and pair sorts of the protected coordinates, whose constants are what a
network says of the free ones. Sums of products of integers below 2^53 are exact in doubles in
whatever order, so no rounding error has to be charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.errors import CorruptBundle
from reticent.networks import Network
from reticent.networks.serial import describe, rebuild
from reticent.systems.power.protection import UNIT, Protection

WEIGHT = 2**14
"""A row of weights of this constant has slope 1."""

_MOST = 2.0**30  # steps that a constant may move a score by
_MOST_WIDTH = 2**8
_MOST_ENTRY = 2 * WEIGHT


@dataclass(frozen=True, eq=False)
class LipschitzScores:
    """t(u, z): scores of free coordinates u and protected ones z, in steps.

    Guarantee:
        For neighbours x, x' under ``protection``, every score differs by at most
        ``protection.largest_step``: the constructor compares the constant of every row of weights
        with ``WEIGHT``, in integers (docs/power.md, theorem 4).

    Attributes:
        protection: what is free and what is protected.
        weights: integers, shapes (width, protected), (width, width) ..., (scores, width), widths
            even.
        shifts: a network of the free coordinates with one output for each row of all weights, in
            units of one radius.

    Raises:
        CorruptBundle: arrays that do not fit, or a row that is steeper than it may be.

    References:
        - Anil, Lucas and Grosse (2019), "Sorting out Lipschitz function approximation",
          arXiv:1811.05381, section 4, the architecture without free coordinates.
    """

    protection: Protection
    weights: tuple[Integers, ...]
    shifts: Network

    def __post_init__(self) -> None:
        inputs = len(self.protection.protected)
        fits = len(self.weights) >= 1
        for place, matrix in enumerate(self.weights):
            last = place == len(self.weights) - 1
            fits = (
                fits
                and matrix.ndim == 2
                and matrix.dtype == np.int64
                and matrix.shape[1] == inputs
                and bool((np.abs(matrix) <= _MOST_ENTRY).all())
                and 1 <= len(matrix) <= _MOST_WIDTH
                and (last or len(matrix) % 2 == 0)
            )
            if fits:
                inputs = len(matrix)
        rows = sum(len(matrix) for matrix in self.weights) if fits else 0
        if not fits or (
            self.shifts.input_shape != (1 + len(self.protection.free),)
            or self.shifts.output_dimension != rows
        ):
            raise CorruptBundle("bundle: weights of its scores do not fit together")
        steep = [self.protection.weight(row) for row in self.weights[0]]
        steep += [
            sum(abs(int(entry)) for entry in row) for matrix in self.weights[1:] for row in matrix
        ]
        beyond = sum(constant > WEIGHT for constant in steep)
        if beyond:
            raise CorruptBundle(
                f"bundle: {beyond} of {len(steep)} rows of its weights are steeper than 1 in what "
                "is protected"
            )

    @property
    def outputs(self) -> int:
        """Number of scores."""
        return len(self.weights[-1])

    def steps(self, rows: Array) -> Array:
        """Scores in whole steps, shape (n, scores); each row's depends on that row alone.

        Args:
            rows: shape (n, dimension), encoded.
        """
        shifts = self.shifts.forward_each(self.protection.given(rows))
        shifts = np.rint(np.clip(shifts * UNIT, -_MOST, _MOST))
        values, start = self.protection.steps(rows), 0
        for place, matrix in enumerate(self.weights):
            # At most 2^28 steps, or 2^36 after a layer, times weights that sum to 2^19, or 2^14.
            moved = np.floor(values @ matrix.T.astype(np.float64) / WEIGHT)
            values = moved + shifts[:, start : start + len(matrix)]
            start += len(matrix)
            if place < len(self.weights) - 1:
                pairs = values.reshape(len(values), -1, 2)
                values = np.stack([pairs.max(axis=2), pairs.min(axis=2)], axis=2)
                values = values.reshape(len(pairs), -1)
        return np.asarray(values)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Plain JSON values and named arrays that ``from_description`` reads."""
        structure, arrays = describe(self.shifts, "shifts")
        weights = {f"weights.{place}": matrix for place, matrix in enumerate(self.weights)}
        return {"shifts": structure, "layers": len(self.weights)}, {**arrays, **weights}

    @classmethod
    def from_description(
        cls, protection: Protection, settings: dict[str, Any], arrays: Arrays
    ) -> LipschitzScores:
        """The scores that ``describe`` took apart; their constants are checked again."""
        layers = range(int(settings["layers"]))
        weights = tuple(np.asarray(arrays[f"weights.{place}"]) for place in layers)
        return cls(protection, weights, rebuild(settings["shifts"], arrays, "shifts"))
