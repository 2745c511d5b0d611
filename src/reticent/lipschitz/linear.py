"""Isotone linear-relaxation bounds for ReLU networks with any number of inputs.

The ranges of pre-activations come from substituting lines with public lower slopes
(``relaxation``), over boxes or over l1 and l2 balls. Derivatives come from substituting lines with
the public slope 1/2, for all directions of the unit ball at once (``joint``), and over l-infinity
balls by chords over single entries (``entries``). The interval bound with the same states of
neurons is taken where it is smaller. Proofs: docs/certificates.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.errors import UnsupportedNetwork
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.grids.arithmetic import ExactLinear, Interval
from reticent.lipschitz.bounds import LipschitzBound, Output, Region, combine, slices
from reticent.lipschitz.entries import MOST_FUNCTIONALS, EntryChords
from reticent.lipschitz.interval import (
    IntervalBound,
    build_forward,
    exact_maps,
    first_layer_values,
    row_norms,
)
from reticent.lipschitz.joint import JointDerivatives
from reticent.lipschitz.relaxation import Inputs, Mask, RelaxedForward
from reticent.networks.network import Network

MOST_WEIGHTS = 2**22
"""Layers are taken as matrices. Wider convolutions are left to the interval bound."""

_ROWS = 128
_SPREAD_BITS = 51


class LinearBound(LipschitzBound):
    """Linear relaxation of pre-activations and of derivatives for ReLU networks, for any number of
    inputs and input norms l-infinity, l2 and l1.

    Apart from rounding it is never above the interval bound.

    Args:
        network: linear layers with ReLU between them, each of at most 2**22 weights as a matrix.
        domain: the public box of its inputs.
        input_norm: norm of the ball.
        output: l1, l2, linf or "spread".

    Raises:
        UnsupportedNetwork: the network is no chain of linear layers and ReLU, or a layer is too
            wide.
        CertificationFailed: the product of the layers' magnitudes leaves float64.

    Guarantee:
        Sound and isotone to the last bit, as every ``LipschitzBound``. The value is a real number
        that grows with the region, rounded up to a public grid. The rounding is exact, whatever
        floating point does. Slopes of lines are public constants, so nothing is chosen by looking
        at the region.

    Edge cases: radius 0 gives the norm of the Jacobian at the point, but for rounding, unless a
    neuron is within rounding of its kink. An affine network gives its exact operator norm. A
    network that is constant over the region gives 0.

    Example:
        >>> from reticent.networks import affine_chain
        >>> net = affine_chain([[[1.0], [-1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [0.0]])  # |x|
        >>> bound = LinearBound(net, domain=Box.cube(1, 4.0), input_norm=Norm.L2, output=Norm.L1)
        >>> [round(float(u), 4) for u in bound.bound([[2.0], [0.0]], 1.0)]
        [1.0, 1.0]

    Utility:
        Over l-infinity balls, .81 to 1.04 times linear relaxation of each entry with slopes chosen
        for each region, on networks of 64 and 784 inputs trained on digits. Over l2 balls 1.0 to
        1.3 times. The interval bound is 1 to 10 times above it (benchmarks/jacobians.py).

    Runtime:
        Three substitutions backward for pre-activations and one for derivatives, O(m^2 n) for n
        inputs and widths m. Over l-infinity balls one more for each functional that may be the
        largest. A point takes 0.2 to 0.4 ms for 64-64-64-10 and 5 to 17 ms for 784-128-128-10 on
        one core (benchmarks/jacobians.py). Where long doubles are float64 (Windows, macOS on ARM),
        the few values that float64 leaves open go to fractions, 0.7 s each on the latter, with the
        same result.

    References:
        - Zhang et al. (2018), "Efficient neural network robustness certification with general
          activation functions", arXiv:1811.00866, substitution of lines (CROWN).
        - Shi et al. (2022), "Efficiently computing local Lipschitz constants of neural networks
          via bound propagation", arXiv:2210.07394, lines around the product of a slope and a
          gradient, chords of the Jacobian's entries.
        - The choices that make the bound isotone, and its proof: docs/certificates.md.

    See Also:
        reticent.lipschitz.LayeredBound: tighter for few inputs.
        reticent.lipschitz.IntervalBound: any network.
    """

    kind: ClassVar[str] = "linear"
    affordable_points = 200

    def __init__(self, network: Network, *, domain: Box, input_norm: Norm, output: Output) -> None:
        super().__init__(network, domain=domain, input_norm=input_norm, output=output)
        if not network.is_relu_chain():
            raise UnsupportedNetwork(
                "linear: expected linear layers with ReLU between them; use the interval bound"
            )
        layers = network.linear_layers()
        widest = max(layer.inputs * layer.outputs for layer in layers)
        if widest > MOST_WEIGHTS:
            raise UnsupportedNetwork(
                f"linear: a layer of {widest} weights as a matrix; expected at most 2**22; use the "
                "interval bound"
            )
        self._intervals = IntervalBound(
            network, domain=domain, input_norm=self.input_norm, output=output
        )
        self._derivatives: JointDerivatives | EntryChords | None = None
        if len(layers) == 1:
            return
        self._stages, self._step = build_forward(network, domain)
        self._norms = row_norms(self._stages[0], self.input_norm)
        matrices = [layer.dense() for layer in layers]
        maps = exact_maps(self._stages)
        reach = np.maximum(np.abs(domain.lower), np.abs(domain.upper)) + self._step
        self._balls = (
            None
            if self._norms is None
            else _Balls.build(maps[0], self._norms, self.input_norm, self._whole_domain())
        )
        self._forward = RelaxedForward.build(
            matrices[:-1],
            [layer.bias for layer in layers[:-1]],
            maps[:-1],
            reach,
            0.0 if self._balls is None else self._balls.spread,
        )
        rows = self.functionals.rows
        self._derivatives = (
            EntryChords.build(rows, matrices)
            if self.input_norm is Norm.LINF and len(rows) <= MOST_FUNCTIONALS
            else JointDerivatives.build(rows, matrices, self.input_norm)
        )

    @property
    @override
    def input_step(self) -> float:
        return self._intervals.input_step

    @property
    @override
    def _rows_at_once(self) -> int:
        return _ROWS

    def _regions(self, region: Region) -> tuple[Inputs, Interval, Interval]:
        """Return the regions, and the first layer's ranges over them and over the balls cut to the
        domain.
        """
        first = first_layer_values(self._stages[0], region, self._norms)
        if self._balls is None:
            return Inputs.boxes(region.box), self._forward.intervals[0](region.box), first
        return *self._balls(region, self._step), first

    @override
    def _bound_region(self, region: Region) -> Array:
        return self._cut_at(region, self.ceiling)

    @override
    def at_most(self, region: Region, limit: float) -> Mask:
        # What lies above the limit need not be known.
        beyond = min(self.ceiling, float(np.nextafter(limit, np.inf)))
        parts = slices(len(region), self._rows_at_once)
        return np.concatenate([self._cut_at(region.part(rows), beyond) <= limit for rows in parts])

    def _cut_at(self, region: Region, cap: float) -> Array:
        """Return the smaller of the bound over each ball and ``cap``, shape (n,)."""
        if self._derivatives is None:
            return np.full(len(region), cap)
        on, unstable = self._forward(*self._regions(region))
        caps = np.minimum(self._intervals.with_states(on, unstable), cap)
        how = self.functionals.combine
        if isinstance(self._derivatives, EntryChords) and how == "max":
            return self._derivatives.capped(on, unstable, caps)
        return np.minimum(combine(self._derivatives(on, unstable), how), caps)


@dataclass(frozen=True, eq=False)
class _Balls:
    """l1 and l2 balls that are *not* cut to the domain, and first-layer ranges over them.

    Lines may only be drawn over ranges that no point of the region leaves, so the balls of a chain
    of relaxations are not cut to boxes. A ball that contains the domain whatever its center is
    replaced by one public ball that contains all smaller ones.

    Attributes:
        exact: the first layer's interval map.
        norms: dual norms of its exact rows in units of ``shift`` weight units, rounded up, shape
            (1, width). ``exact.slack`` covers the rounding of the weights within the domain alone,
            and these balls reach beyond it.
        shift: a power of two, chosen so that these norms times radii are whole numbers below 2**52.
        norm: the norm of the balls.
        center: the center of the public ball, shape (1, inputs), whole steps.
        whole, largest: the radius from which on balls are replaced, and that of the public ball.
    """

    exact: ExactLinear
    norms: Array
    shift: float
    norm: Norm
    center: Array
    whole: float
    largest: float

    @classmethod
    def build(cls, exact: ExactLinear, norms: Array, norm: Norm, domain: Region) -> _Balls:
        widths = domain.box.upper - domain.box.lower
        # Half a unit per weight, and room for the rounding of this sum.
        norms = np.ceil(norms + 0.51 * norm.dual.of_ones(exact.layer.fan_in))
        whole = float(np.ceil(norm.of(widths)[0] * (1.0 + 2.0**-40))) + 1.0
        largest = 2.0 * whole
        most = max(float(norms.max(initial=0.0)), 1.0) * largest
        shift = 2.0 ** max(0, ceil(log2(most)) - _SPREAD_BITS)
        return cls(exact, np.ceil(norms / shift), shift, norm, domain.centers, whole, largest)

    @property
    def spread(self) -> Array:
        """The largest distance of the first layer's pre-activations from those at a center, in real
        terms, shape (width,).
        """
        unit = self.exact.output_unit * self.shift
        return np.asarray((self.largest * self.norms[0] + 2.0) * unit)

    def __call__(self, region: Region, step: float) -> tuple[Inputs, Interval]:
        """Return the balls in real terms, and the ranges of the first layer over them."""
        everything = region.radii >= self.whole
        centers = np.where(everything, self.center, region.centers)
        radii = np.where(everything, self.largest, region.radii)
        exact, shift = self.exact, self.shift
        middle = exact.layer.map(centers, exact.weight)
        spread = radii * self.norms
        lower = np.floor((middle + (exact.bias.lower - exact.slack)) / shift) - spread
        upper = np.ceil((middle + (exact.bias.upper + exact.slack)) / shift) + spread
        over = Interval(lower, upper, exact.output_unit * shift)
        return Inputs(centers * step, radii * step, self.norm), over
