"""Isotone bounds for ReLU networks with two and more hidden layers, which treat the layers' slopes
together.

``enumeration`` bounds the derivative of each neuron of a later layer separately and adds up the
worst of each. No single choice of first-layer slopes is the worst for all. Here all neurons behind
the first layer share its slopes, and linear relaxation cuts pre-activations first. Proofs:
docs/certificates.md.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.errors import UnsupportedNetwork
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.lipschitz.bounds import LipschitzBound, Output, Region, combine, slices
from reticent.lipschitz.directional import Slopes
from reticent.lipschitz.enumeration import directions_of
from reticent.lipschitz.interval import build_forward, exact_maps, first_layer_values, row_norms
from reticent.lipschitz.pairs import Pairs
from reticent.lipschitz.relaxation import Inputs, RelaxedForward
from reticent.networks.network import Network

_ROWS = 128
"""Regions whose pre-activations are ranged in one pass."""


class LayeredBound(LipschitzBound):
    """Joint sign enumeration for ReLU networks of any depth, for input norms l-infinity (up to 14
    inputs) and l1.

    Apart from rounding it is never above the enumeration or the interval bound. Where all hidden
    layers but the first have at most 16 neurons together (``SEARCHED_WIDTH``), it is the largest
    norm over *all* combinations of certified slopes.

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
        1.3 times the exact constant on trained 8-32-16-8 networks at radius 0.5 (median), where
        enumeration has 2.0 and intervals 4.3. On wider ones 1.4 to 1.7 times the largest slope
        found by search (benchmarks/layered.py).

    Runtime:
        0.2 ms a point for 8-16-8, 3 ms for 8-16-16-8, on one core (benchmarks/runtimes.py). The
        search of slopes is cut off at a fixed width, so its cost is bounded.

    References:
        - Zhang, Zhang and Hsieh (2019), "RecurJac: an efficient recursive algorithm for bounding
          Jacobian matrix of neural networks and its applications", arXiv:1810.11783, recursion over
          layers.
        - Jordan and Dimakis (2020), "Exactly computing the local Lipschitz constant of ReLU
          networks", arXiv:2003.01219, slopes of a ReLU network as a maximum over activations.
        - The bound and its proof: docs/certificates.md, section 5.

    See Also:
        reticent.lipschitz.EnumerationBound: faster, for one hidden layer.
        reticent.lipschitz.IntervalBound: any network.
    """

    kind: ClassVar[str] = "layered"
    affordable_points: ClassVar[int] = 200
    _asked_at_once: ClassVar[int] = 0  # its time is spent region by region

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
        self._pairs: Pairs | None = None
        if len(linear) > 1:
            reach = np.maximum(np.abs(domain.lower), np.abs(domain.upper)) + self._step
            biases = [layer.bias for layer in linear]
            maps = exact_maps(self._stages)
            self._forward = RelaxedForward.build(matrices[:-1], biases[:-1], maps[:-1], reach)
            self._pairs = Pairs.build(self.functionals.rows, directions, matrices)

    @property
    @override
    def input_step(self) -> float:
        return self._step

    @property
    @override
    def _rows_at_once(self) -> int:
        return _ROWS

    def _slopes(self, region: Region) -> list[Slopes]:
        """Return which neurons are on or unstable over each ball."""
        first = first_layer_values(self._stages[0], region, self._first_norms)
        over = self._forward.intervals[0](region.box)
        values = self._forward(Inputs.boxes(region.box), over, first)
        on = [part.lower >= 0 for part in values]
        unstable = [(part.lower < 0) & (part.upper >= 0) for part in values]
        return [
            Slopes(tuple(part[row] for part in on), tuple(part[row] for part in unstable))
            for row in range(len(region))
        ]

    @override
    def _bound_region(self, region: Region) -> Array:
        if self._pairs is None:
            return np.full(len(region), self.ceiling)
        slopes = self._slopes(region)
        if self.functionals.combine == "max":
            return np.array([self._pairs.largest(each) for each in slopes])
        how = self.functionals.combine
        return np.array([combine(self._pairs.per_direction(each), how).max() for each in slopes])

    @override
    def at_most(self, region: Region, limit: float) -> npt.NDArray[np.bool_]:
        pairs = self._pairs
        if self.ceiling <= limit:
            return np.ones(len(region), dtype=np.bool_)
        if pairs is None or self.functionals.combine != "max":
            return super().at_most(region, limit)
        parts = [
            [pairs.at_most(each, limit) for each in self._slopes(region.part(rows))]
            for rows in slices(len(region), _ROWS)
        ]
        return np.array([answer for part in parts for answer in part], dtype=np.bool_)
