"""Isotone bounds for ReLU networks of any depth, which treat the layers' slopes together.

By convexity the largest derivative is that along an extreme point of the input ball. With one
hidden layer it is read off tables, for all such directions and all functionals. With more, all
neurons behind the first layer share its slopes: bounding each separately and adding up the worst
would lose, since no single choice of first-layer slopes is the worst for all. Linear relaxation
cuts pre-activations first. Proofs: docs/certificates.md.
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
from reticent.grids.arithmetic import Interval
from reticent.lipschitz.bounds import LipschitzBound, Output, Region, combine, slices
from reticent.lipschitz.direction_table import DirectionTable
from reticent.lipschitz.directional import Slopes
from reticent.lipschitz.interval import build_forward, exact_maps, first_layer_values, row_norms
from reticent.lipschitz.neuron_table import NeuronTable
from reticent.lipschitz.pairs import Pairs
from reticent.lipschitz.relaxation import Inputs, RelaxedForward
from reticent.lipschitz.slopes import rectify
from reticent.networks.network import Network

MAX_INPUTS = 14
"""Up to this many inputs all 2**(n-1) directions t are carried. Beyond, use the linear bound."""

_TABLE_NUMBERS = 2**23
_DIRECTION_NUMBERS = 2**20  # a table of directions holds four arrays of as many doubles

_ROWS = 128
"""Regions whose pre-activations are ranged in one pass."""


class LayeredBound(LipschitzBound):
    """Joint sign enumeration for ReLU networks of any depth, for input norms l-infinity (up to 14
    inputs) and l1.

    Apart from rounding it is never above the interval bound. Where all hidden layers but the first
    have at most 16 neurons together (``SEARCHED_WIDTH``), it is the largest norm over *all*
    combinations of certified slopes.

    Args:
        network: linear layers with ReLU between them.
        domain: the public box of its inputs.
        input_norm: l-infinity (directions are sign vectors) or l1 (directions are unit vectors).
        output: l1, l2, linf or "spread".

    Raises:
        UnsupportedNetwork: the network is no chain of linear layers and ReLU.
        UnsupportedNorm: balls are l2, or inputs are too many to enumerate.

    Guarantee:
        Sound and isotone to the last bit, as every ``LipschitzBound``. The value is a real number
        that grows with the region, rounded up to a public grid. The rounding is exact, whatever
        floating point and the order of a search do.

    Edge cases: radius 0 gives the norm of the Jacobian at the point unless a neuron is within
    rounding of its kink. An affine network gives its exact operator norm. Dead units contribute
    nothing.

    Example:
        >>> from reticent.networks import affine_chain
        >>> net = affine_chain(
        ...     [[[1.0], [-1.0]], [[1.0, 1.0]], [[1.0]]], [[0.0, 0.0], [-1.0], [0.0]]
        ... )  # max(|x| - 1, 0)
        >>> bound = LayeredBound(net, domain=Box.cube(1, 4.0), input_norm=Norm.LINF, output=Norm.L1)
        >>> [round(float(u), 4) for u in bound.bound([[2.0], [0.0]], 0.5)]
        [1.0, 0.0]

    Utility:
        With one hidden layer 1.07 times the largest slope found by search (median, and 1.16 for
        nine points in ten) on trained 8-16-8 networks at radius 0.5, against 1.74 by intervals
        (benchmarks/certify.py). With two 1.3 times the exact constant on trained 8-32-16-8 networks
        (median), where intervals have 4.3. On wider ones 1.4 to 1.7 times the largest slope found
        by search (benchmarks/layered.py).

    Runtime:
        With one hidden layer O(2^(n - 1) h) sums for n inputs (l-infinity) and h neurons: 2.5
        microseconds a point for 8-16-8. 3 ms for 8-16-16-8, on one core (benchmarks/runtimes.py).
        The search of slopes is cut off at a fixed width, so its cost is bounded.

    References:
        - Zhang, Zhang and Hsieh (2019), "RecurJac: an efficient recursive algorithm for bounding
          Jacobian matrix of neural networks and its applications", arXiv:1810.11783, recursion over
          layers.
        - Jordan and Dimakis (2020), "Exactly computing the local Lipschitz constant of ReLU
          networks", arXiv:2003.01219, slopes of a ReLU network as a maximum over activations.
        - Weng et al. (2018), "Towards fast computation of certified robustness for ReLU networks",
          arXiv:1804.09699, Fast-Lip, which bounds slopes layer by layer.
        - The bound and its proof: docs/certificates.md, sections 4 and 5.

    See Also:
        reticent.lipschitz.LinearBound: any number of inputs.
        reticent.lipschitz.IntervalBound: any network.
    """

    kind: ClassVar[str] = "layered"

    def __init__(self, network: Network, *, domain: Box, input_norm: Norm, output: Output) -> None:
        super().__init__(network, domain=domain, input_norm=input_norm, output=output)
        if not network.is_relu_chain():
            raise UnsupportedNetwork(
                "layered: expected linear layers with ReLU between them; use the interval bound"
            )
        directions = directions_of(self.input_norm, network.input_dimension)
        self._stages, self._step = build_forward(network, domain)
        self._first_norms = row_norms(self._stages[0], self.input_norm)
        linear = network.linear_layers()
        matrices = [layer.dense() for layer in linear]
        self._table = self._one_layer_table(directions, matrices) if len(linear) == 2 else None
        self._pairs: Pairs | None = None
        if len(linear) == 1 or self._table is not None:
            return
        self.affordable_points, self._asked_at_once = 200, 0  # time is spent region by region
        reach = np.maximum(np.abs(domain.lower), np.abs(domain.upper)) + self._step
        biases = [layer.bias for layer in linear]
        maps = exact_maps(self._stages)
        self._forward = RelaxedForward.build(matrices[:-1], biases[:-1], maps[:-1], reach)
        self._pairs = Pairs.build(self.functionals.rows, directions, matrices)

    def _one_layer_table(
        self, directions: Array, matrices: list[Array]
    ) -> NeuronTable | DirectionTable | None:
        """Return the table of a network with one hidden layer, or None where it is too large."""
        (first, last), rows = matrices, self.functionals.rows
        pairs, whole = len(first) * len(rows) * len(directions), self._states(self._whole_domain())
        if self.functionals.combine == "max" and pairs <= _TABLE_NUMBERS:
            magnitudes = np.abs(rows) @ np.abs(last)
            return NeuronTable.build(first, rows @ last, magnitudes, directions, whole)
        if self.functionals.combine != "max" and pairs <= _DIRECTION_NUMBERS:
            l2 = self.functionals.combine == "l2"
            return DirectionTable.build(first, rows @ last, directions, whole=whole, l2=l2)
        return None

    def _states(self, region: Region) -> Interval:
        """Return the ranges of the first hidden layer's slopes over each ball."""
        return rectify(first_layer_values(self._stages[0], region, self._first_norms))[1]

    @property
    @override
    def input_step(self) -> float:
        return self._step

    @property
    @override
    def _rows_at_once(self) -> int:
        return _ROWS if self._table is None else self._table.rows_at_once

    def _slopes(self, region: Region) -> list[Slopes]:
        """Return which neurons are on or unstable over each ball."""
        first = first_layer_values(self._stages[0], region, self._first_norms)
        over = self._forward.intervals[0](region.box)
        on, unstable = self._forward(Inputs.boxes(region.box), over, first)
        return [
            Slopes(tuple(part[row] for part in on), tuple(part[row] for part in unstable))
            for row in range(len(region))
        ]

    @override
    def _bound_region(self, region: Region) -> Array:
        if self._table is not None:
            return self._table.largest(self._states(region))
        if self._pairs is None:
            return np.full(len(region), self.ceiling)
        slopes = self._slopes(region)
        if self.functionals.combine == "max":
            return np.array([self._pairs.largest(each) for each in slopes])
        how = self.functionals.combine
        return np.array([combine(self._pairs.per_direction(each), how).max() for each in slopes])

    @override
    def at_most(self, region: Region, limit: float) -> npt.NDArray[np.bool_]:
        pairs, table = self._pairs, self._table
        if self.ceiling <= limit:
            return np.ones(len(region), dtype=np.bool_)
        if table is None and (pairs is None or self.functionals.combine != "max"):
            return super().at_most(region, limit)
        found = []
        for rows in slices(len(region), self._rows_at_once):
            part = region.part(rows)
            if table is not None:
                found.append(table.largest(self._states(part), enough=limit) <= limit)
            else:
                assert pairs is not None
                found.append(np.array([pairs.at_most(one, limit) for one in self._slopes(part)]))
        return np.concatenate(found)


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
            "layered: l2 balls have no finite set of directions; use the linear bound"
        )
    if inputs > MAX_INPUTS:
        raise UnsupportedNorm(
            f"layered: {inputs} inputs, expected at most {MAX_INPUTS}; use the linear bound"
        )
    return sign_patterns(inputs, up_to_sign=True)
