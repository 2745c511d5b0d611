"""Isotone sign-enumeration bounds, the default for ReLU networks of one hidden layer with few
inputs and outputs.

The l-infinity to l1 norm of a Jacobian J is the largest s . J t over sign vectors s and t. For one
hidden layer s . J t = sum_j d_j c_j with c_j = (s W2)_j (W1 t)_j and d_j the slope of neuron j.
Over a region it is at most

    U = max over s, t of  sum over on neurons of c_j  +  sum over unstable neurons of max(0, c_j)

A larger region only turns on and off neurons into unstable ones, which only raises U
(``neuron_table``). For more layers the range of each layer's directional derivative along t is
carried forward. On trained 8-16-8 networks this is 0 to 8 % above the exact constant. Intervals are
about twice it. Proofs: docs/certificates.md.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.errors import UnsupportedNetwork, UnsupportedNorm
from reticent.core.norms import Norm, sign_patterns
from reticent.core.regions import Box
from reticent.grids.arithmetic import (
    ExactLinear,
    Interval,
    around,
    euclidean_norm,
    power_of_two_at_least,
)
from reticent.lipschitz.bounds import LipschitzBound, Output, Region, combine, slices
from reticent.lipschitz.direction_table import DirectionTable
from reticent.lipschitz.interval import build_forward, first_layer_values, forward_stages, row_norms
from reticent.lipschitz.neuron_table import NeuronTable
from reticent.lipschitz.slopes import scaled_by
from reticent.networks.layers import Affine, without_bias
from reticent.networks.network import Network

MAX_INPUTS = 14
"""Up to this many inputs all 2**(n-1) directions t are carried. Beyond, use the interval bound."""

_TABLE_NUMBERS = 2**23
_DIRECTION_NUMBERS = 2**20  # a table of directions holds four arrays of as many doubles
_WORKING_NUMBERS = 2**17  # arrays of 1 MiB stay in the cache


class EnumerationBound(LipschitzBound):
    """Two-sided sign enumeration for ReLU networks, for input norms l-infinity (up to 14 inputs)
    and l1.

    With two and more hidden layers ``LayeredBound`` is never above it, mostly far below, and takes
    a little longer.

    Args:
        network: linear layers with ReLU between them.
        domain: the public box of its inputs.
        input_norm: l-infinity (directions are sign vectors) or l1 (directions are unit vectors).
        output: l1, l2, linf or "spread".

    Raises:
        UnsupportedNetwork: the network is no chain of linear layers and ReLU.
        UnsupportedNorm: balls are l2, or inputs are too many to enumerate.

    Edge cases: radius 0 gives the norm of the Jacobian at the point unless a neuron is within one
    grid step of its kink. An affine network gives its exact operator norm. Dead units contribute
    nothing.

    Example:
        >>> from reticent.networks import affine_chain
        >>> net = affine_chain([[[1.0], [-1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [0.0]])  # |x|
        >>> bound = EnumerationBound(
        ...     net, domain=Box.cube(1, 4.0), input_norm=Norm.LINF, output=Norm.L1
        ... )
        >>> [round(float(u), 4) for u in bound.bound([[2.0], [0.0]], 1.0)]
        [1.0, 1.0]

    Utility:
        With one hidden layer 1.07 times the largest slope found by search (median, and 1.16 for
        nine points in ten) on trained 8-16-8 networks at radius 0.5, against 1.74 by intervals
        (benchmarks/certify.py). With two hidden layers about 2 times the exact constant.

    Runtime:
        O(2^(n - 1) h) sums for n inputs (l-infinity) and h neurons: 2.5 microseconds a point for
        8-16-8, 0.2 to 0.5 ms for 8-16-16-8, on one core (benchmarks/runtimes.py).

    References:
        - Jordan and Dimakis (2020), "Exactly computing the local Lipschitz constant of ReLU
          networks", arXiv:2003.01219, slopes of a ReLU network as a maximum over activations.
        - Weng et al. (2018), "Towards fast computation of certified robustness for ReLU networks",
          arXiv:1804.09699, Fast-Lip, which bounds slopes layer by layer.
        - The bound and its proof: docs/certificates.md.

    See Also:
        reticent.lipschitz.LayeredBound: deeper networks, tighter.
        reticent.lipschitz.IntervalBound: any network, any number of inputs.
    """

    kind: ClassVar[str] = "enumeration"

    def __init__(self, network: Network, *, domain: Box, input_norm: Norm, output: Output) -> None:
        super().__init__(network, domain=domain, input_norm=input_norm, output=output)
        if not network.is_relu_chain():
            raise UnsupportedNetwork(
                "enumeration: expected linear layers with ReLU between them; use the interval bound"
            )
        self._directions = directions_of(self.input_norm, network.input_dimension)
        self._stages, self._step = build_forward(network, domain)
        self._first_norms = row_norms(self._stages[0], self.input_norm)
        linear = network.linear_layers()
        self._hidden = len(linear) - 1
        self._table: NeuronTable | DirectionTable | None = None
        last = self.functionals.rows @ linear[-1].dense()
        # Only |row . derivative| of the last layer is needed, so its rows are folded into the
        # functionals.
        self._rows = Affine(last, np.zeros(len(last)))
        pairs = linear[0].outputs * len(last) * len(self._directions)
        if self._hidden == 1 and self.functionals.combine == "max" and pairs <= _TABLE_NUMBERS:
            whole = self._slopes(self._whole_domain())[0]
            magnitudes = np.abs(self.functionals.rows) @ np.abs(linear[-1].dense())
            self._table = NeuronTable.build(
                linear[0].dense(), last, magnitudes, self._directions, whole
            )
        elif self._hidden:
            self._build_directional(network)
            if (
                self._hidden == 1
                and self.functionals.combine != "max"
                and pairs <= _DIRECTION_NUMBERS
            ):
                self._table = DirectionTable.build(
                    self._first,
                    self._middle[0],
                    whole=self._slopes(self._whole_domain())[0],
                    largest_derivative=self._largest,
                    l2=self.functionals.combine == "l2",
                )

    def _build_directional(self, network: Network) -> None:
        linear = [without_bias(layer) for layer in network.linear_layers()]
        first = self._directions @ linear[0].dense().T
        error = np.abs(self._directions) @ np.abs(linear[0].dense()).T * 2.0**-44
        unit = power_of_two_at_least(float(np.abs(first).max(initial=0.0))) * 2.0**-30
        self._first = Interval(
            around(first - error, unit).lower, around(first + error, unit).upper, unit
        )
        derivative = self._first
        self._middle: list[ExactLinear] = []
        slopes = self._slopes(self._whole_domain())
        for index, slope in enumerate(slopes):
            derivative = scaled_by(derivative, _per_direction(slope), derivative.largest())
            layer = linear[index + 1] if index + 1 < self._hidden else self._rows
            self._middle.append(ExactLinear.build(layer, derivative.largest()))
            derivative = self._middle[-1](derivative)
        self._largest = derivative.largest()

    @property
    @override
    def input_step(self) -> float:
        return self._step

    @property
    @override
    def _rows_at_once(self) -> int:
        if self._table is not None:
            return self._table.rows_at_once
        widest = max(
            [len(self.functionals.rows), *(layer.outputs for layer in self.network.linear_layers())]
        )
        return max(1, _WORKING_NUMBERS // (len(self._directions) * widest))

    def _slopes(self, region: Region) -> list[Interval]:
        entering = first_layer_values(self._stages[0], region, self._first_norms)
        # Behind the last linear layer there is no activation, so its values are not needed.
        _, slopes = forward_stages(self._stages[1:-1], entering)
        return [slope for slope in slopes if isinstance(slope, Interval)]

    @override
    def at_most(self, region: Region, limit: float) -> npt.NDArray[np.bool_]:
        if self._table is None or self.ceiling <= limit:
            return super().at_most(region, limit)
        parts = [
            self._table.largest(self._slopes(region.part(rows))[0], enough=limit) <= limit
            for rows in slices(len(region), self._rows_at_once)
        ]
        return np.concatenate(parts)

    @override
    def _bound_region(self, region: Region) -> Array:
        slopes = self._slopes(region)
        if not slopes:
            return np.full(len(region), self.ceiling)
        if self._table is not None:
            return self._table.largest(slopes[0])
        derivative = self._first
        for slope, layer in zip(slopes, self._middle, strict=True):
            derivative = layer(scaled_by(derivative, _per_direction(slope), np.inf))
        magnitude = derivative.magnitude()  # (n, directions, functionals)
        if self.functionals.combine == "max":
            return np.asarray(magnitude.max(axis=(1, 2)) * derivative.unit)
        if self.functionals.combine == "l2":
            return np.asarray(euclidean_norm(magnitude, derivative.unit, self._largest).max(axis=1))
        flat = magnitude.reshape(-1, magnitude.shape[-1]) * derivative.unit
        return np.asarray(combine(flat, "sum").reshape(len(region), -1).max(axis=1))


def directions_of(input_norm: Norm, inputs: int) -> Array:
    """Return the extreme points of the unit ball, one of each pair {t, -t}, shape (directions,
    inputs).

    Raises:
        UnsupportedNorm: the ball is l2, or a cube of more than ``MAX_INPUTS`` inputs.
    """
    if input_norm is Norm.L1:
        return np.eye(inputs)
    if input_norm is Norm.L2:
        raise UnsupportedNorm(
            "enumeration: l2 balls have no finite set of directions; use the interval bound"
        )
    if inputs > MAX_INPUTS:
        raise UnsupportedNorm(
            f"enumeration: {inputs} inputs, expected at most {MAX_INPUTS}; use the interval bound"
        )
    return sign_patterns(inputs, up_to_sign=True)


def _per_direction(slope: Interval) -> Interval:
    return Interval(slope.lower[:, None, :], slope.upper[:, None, :], slope.unit)
