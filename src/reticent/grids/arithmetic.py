"""Interval arithmetic on public dyadic grids, where every product and sum is exact and every
rounding goes outward.

Plain floating point does not do. A certificate decides a privacy test, so it has to be *monotone
under inclusion to the last bit*. A matrix product that sums in another order for another batch
size, thread count or CPU breaks that. Here every number is an integer multiple of a public power of
two. It is small enough that float64 (or float32) adds and multiplies it without any rounding, so
the order of summation cannot matter. Values are rounded to the next layer's grid by ``floor`` and
``ceil``, which are monotone. So a smaller region gives a smaller interval, exactly, on every
machine, alone or in any batch.

Grids are chosen when a bound is built, from the weights and the public domain, never from a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, frexp, isfinite, log2

import numpy as np

from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed
from reticent.networks.layers import Linear

WEIGHT_BITS = 24
_EXACT = 2.0**51  # sums below this, and their doubles, are exact in float64
_LARGEST = (
    2.0**300
)  # with all magnitudes in [1/_LARGEST, _LARGEST] no unit and no product of units leaves float64


def power_of_two_at_least(value: float) -> float:
    """Return the smallest power of two that is at least ``value`` (1 for zero).

    Raises:
        CertificationFailed: ``value`` is not finite, because a magnitude outgrew float64.

    Example:
        >>> power_of_two_at_least(5.0)
        8.0
    """
    if value == 0:
        return 1.0
    if not isfinite(value):
        raise CertificationFailed(
            "the ranges of this network outgrow float64; expected smaller weights or a smaller "
            "domain"
        )
    mantissa, exponent = frexp(value)
    return float(2.0 ** (exponent - 1 if mantissa == 0.5 else exponent))


@dataclass(frozen=True, eq=False)
class Interval:
    """Arrays of intervals whose ends are whole multiples of ``unit``.

    Attributes:
        lower, upper: integers held in float64, of one shape, ``lower <= upper``, magnitude below
            2**52.
        unit: a power of two.
    """

    lower: Array
    upper: Array
    unit: float

    def on_grid(self, unit: float) -> Interval:
        """Return the same intervals on another grid, rounded outward."""
        if unit == self.unit:
            return self
        ratio = self.unit / unit
        return Interval(np.floor(self.lower * ratio), np.ceil(self.upper * ratio), unit)

    def magnitude(self) -> Array:
        """Return the largest absolute value of each interval, in units."""
        return np.maximum(-self.lower, self.upper)

    def largest(self) -> float:
        """Return the largest absolute value of all the intervals, in real terms."""
        return float(self.magnitude().max(initial=0.0)) * self.unit

    def plus(self, other: Interval, unit: float) -> Interval:
        """Return the sums of intervals, both moved to the grid ``unit`` first (``unit_of_sum``)."""
        left, right = self.on_grid(unit), other.on_grid(unit)
        return Interval(left.lower + right.lower, left.upper + right.upper, unit)


def unit_of_sum(left: Interval, right: Interval) -> float:
    """Return the grid for sums of intervals inside ``left`` and ``right``: the finer of theirs, or
    50 bits of the sum if coarser.

    Two summands can be on grids that are far apart (functionals are whole numbers, a gradient has
    50 bits). The coarser of the two would round the other away.
    """
    largest = left.largest() + right.largest()
    return max(min(left.unit, right.unit), power_of_two_at_least(largest) * 2.0**-50)


def around(values: Array, unit: float) -> Interval:
    """Return the narrowest grid intervals that contain real ``values``."""
    scaled = values / unit  # division by a power of two is exact
    return Interval(np.floor(scaled), np.ceil(scaled), unit)


@dataclass(frozen=True, eq=False)
class ExactLinear:
    """W x + b (or W' g) over intervals, exact but for one outward rounding of the inputs and of W.

    Attributes:
        layer: the map.
        transposed: whether W' without bias is applied instead of W with bias.
        weight: W in whole multiples of ``weight_unit``, at most 2**24 of them.
        input_unit: grid that inputs are rounded to.
        slack: bound on the effect of |W - weight * weight_unit| for every input in the public
            range, in output units.
        bias: interval around b in output units, zero if transposed.
    """

    layer: Linear
    transposed: bool
    weight: Array
    absolute: Array
    input_unit: float
    output_unit: float
    slack: float
    bias: Interval

    @classmethod
    def build(cls, layer: Linear, largest_input: float, *, transposed: bool = False) -> ExactLinear:
        """Return the map for inputs of at most ``largest_input`` in magnitude.

        Raises:
            CertificationFailed: the layer is so wide that less than 12 bits would be left for
                its inputs, or magnitudes are beyond 2**-300 to 2**300.
        """
        largest_weight = float(np.abs(layer.weight).max(initial=0.0))
        if (
            0 < largest_weight < 1 / _LARGEST
            or max(largest_weight, largest_input, np.abs(layer.bias).max()) > _LARGEST
        ):
            raise CertificationFailed(
                "the weights, biases or ranges of a layer are beyond 2**-300 to 2**300; "
                "expected a rescaled network"
            )
        weight_unit = power_of_two_at_least(largest_weight) * 2.0**-WEIGHT_BITS
        weight = np.round(layer.weight / weight_unit)
        absolute = np.abs(weight)
        ones = np.ones((1, layer.outputs if transposed else layer.inputs))
        apply = layer.transposed_map if transposed else layer.map
        row_sum = float(apply(ones, absolute).max(initial=0.0))  # exact: whole numbers below 2**53
        terms = layer.fan_out if transposed else layer.fan_in
        bias = np.zeros(layer.inputs) if transposed else layer.bias
        offset = float(np.abs(bias).max(initial=0.0)) / weight_unit
        needed = (row_sum + terms + 1.0) * max(largest_input, 1 / _LARGEST) + offset
        input_unit = power_of_two_at_least(needed / _EXACT * 2.0)
        if (
            largest_input > 0
            and largest_input / input_unit < 2.0**12
            and offset <= row_sum * largest_input
        ):
            raise CertificationFailed(
                f"a layer that sums {terms} terms leaves too few exact bits; expected a "
                "narrower layer"
            )
        output_unit = weight_unit * input_unit
        # Half a unit per weight is the rounding of W. The rest covers the rounding of weights that
        # were folded in floating point, and of x - r and x + r where a region begins and ends
        # (docs/certificates.md).
        slack = float(np.ceil(0.51 * terms * ceil(largest_input / input_unit)))
        return cls(
            layer,
            transposed,
            weight,
            absolute,
            input_unit,
            output_unit,
            slack,
            around(bias, output_unit),
        )

    def __call__(self, values: Interval) -> Interval:
        """Return intervals that contain W x + b for every x in ``values``, shape (..., outputs)."""
        values = values.on_grid(self.input_unit)
        shape = values.lower.shape
        apply = self.layer.transposed_map if self.transposed else self.layer.map
        lower, upper = values.lower.reshape(-1, shape[-1]), values.upper.reshape(-1, shape[-1])
        center = apply(lower + upper, self.weight)
        spread = apply(upper - lower, self.absolute)
        low = np.floor(0.5 * (center - spread)) + (self.bias.lower - self.slack)
        high = np.ceil(0.5 * (center + spread)) + (self.bias.upper + self.slack)
        return Interval(
            low.reshape(*shape[:-1], -1), high.reshape(*shape[:-1], -1), self.output_unit
        )


def sum_of_magnitudes(values: Interval) -> Array:
    """Return an upper bound on the l1 norm of each row of ``values``, shape (..., d) to (...,), by
    exact sums on a grid.
    """
    # bit-exact: the grid is so coarse that a row's sum stays below 2^51 units, whatever the order.
    coarse = values.on_grid(values.unit * _headroom(values, bits=51))
    return np.asarray(coarse.magnitude().sum(axis=-1) * coarse.unit)


def euclidean_norm(magnitudes: Array, unit: float, largest: float) -> Array:
    """Return an upper bound on the l2 norm of rows of non-negative whole multiples of ``unit``.

    Args:
        magnitudes: shape (..., d), whole numbers.
        unit: grid of the magnitudes.
        largest: a public bound on the entries in real terms. Entries are rounded up to about 22
            bits of it, so that squares and their sums are exact.
    """
    if largest == 0:
        return np.zeros(magnitudes.shape[:-1])
    # bit-exact: entries keep so few bits that the sum of their squares is exact in any order.
    bits = (51 - ceil(log2(max(magnitudes.shape[-1], 1)))) // 2
    coarse = power_of_two_at_least(largest) * 2.0**-bits
    rounded = (
        np.ceil(magnitudes * (unit / coarse)) if coarse > unit else magnitudes * (unit / coarse)
    )
    return np.asarray(np.sqrt(np.square(rounded).sum(axis=-1)) * (1 + 2.0**-50) * coarse)


def _headroom(values: Interval, bits: int) -> float:
    """Return the power of two by which units must grow so that a row of magnitudes below 2**52 sums
    below 2**bits.
    """
    terms = values.lower.shape[-1]
    return 2.0 ** max(0, ceil(log2(max(terms, 1))) + 52 - bits)
