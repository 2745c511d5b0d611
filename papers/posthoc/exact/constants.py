"""The exact local Lipschitz constant of a ReLU network on a box.

``lipschitz_constant`` computes one, with a witness. ``ExactBound`` takes the place of an isotone
bound. It answers the question of the privacy test, "is L(x, r) <= P?", by the
exact truth, which is isotone (monotone under inclusion) because L is. Proofs: docs/exact-search.md.

The search finds the largest norm of the Jacobian of an activation pattern that some point of the
*closed* ball is consistent with. A neuron at its kink is consistent with both slopes. This norm is
at least the Lipschitz constant. It is equal to it unless pieces of the network meet in the ball
without having an inside there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from papers.posthoc.exact.patterns import ReluChain, Signs
from papers.posthoc.exact.search import Goal, Limits, PatternSearch
from reticent.core.arrays import Array
from reticent.core.checks import finite_array, positive
from reticent.core.errors import (
    CertificationFailed,
    InvalidInput,
    InvalidParameter,
    UnsupportedNorm,
)
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.lipschitz.bounds import LipschitzBound, Output, Region, parse_output
from reticent.networks.network import Network
from reticent.systems.posthoc.certificates import bound_of

RELATIVE = 2.0**-20
"""Relative tolerance of the values that ``ExactBound`` reports. Its decisions have none."""

_GLOBAL_NODES = 2000


@dataclass(frozen=True, eq=False)
class ExactResult:
    """A local Lipschitz constant.

    Attributes:
        value: the measure of the Jacobian at the witness, which is the constant up to the
            tolerance.
        lower, upper: proved bounds on the constant.
        witness: a point of the ball, shape (n,).
        pattern: the activation pattern of ``value``, 1 or -1 per hidden neuron, consistent with the
            witness.
        nodes: the number of partial patterns that were looked at.
    """

    value: float
    lower: float
    upper: float
    witness: Array
    pattern: Signs
    nodes: int


def lipschitz_constant(
    network: Network,
    center: npt.ArrayLike,
    radius: float,
    *,
    domain: Box,
    input_norm: Norm = Norm.LINF,
    output: Output = Norm.L1,
    relative: float = 1e-6,
    absolute: float = 0.0,
    limits: Limits | None = None,
) -> ExactResult:
    """Return the Lipschitz constant of a ReLU chain on the ball of ``radius`` around ``center``,
    cut to ``domain``.

    Args:
        network: linear layers with ReLU between them, at most 14 inputs.
        center: shape (n,), finite, clipped to the domain.
        radius: at least 0. Infinity covers the whole domain.
        domain: the public box of the inputs.
        input_norm: l-infinity.
        output: l1 (up to 12 outputs), linf or "spread".
        relative, absolute: two tolerances, not both 0. The answer is within the larger of the two.
        limits: the limits at which the search gives up, by default none.

    Raises:
        CertificationFailed: a limit was reached. There is no partial answer.
        UnsupportedNetwork, UnsupportedNorm: what exact search does not cover.

    Edge cases: radius 0 gives the norm of the Jacobian at the point, the largest over both sides of
    each kink that goes through it. An affine network gives its operator norm. A constant one gives
    0. Dead units cost nothing.

    Example:
        >>> from reticent.networks import affine_chain
        >>> net = affine_chain(
        ...     [[[1.0], [1.0]], [[1.0, 2.0]]], [[0.0, -1.0], [0.0]]
        ... )  # slope 0, then 1 from 0, then 3 from 1
        >>> found = lipschitz_constant(net, [0.0], 0.5, domain=Box.cube(1, 4.0))
        >>> found.value
        1.0
        >>> lipschitz_constant(net, [0.0], 1.0, domain=Box.cube(1, 4.0)).value
        3.0

    Utility:
        Within the tolerance of the exact constant, with a witness. Both ends are proved.

    Runtime:
        Exponential in the number of neurons that can change sides in the ball: 4 to 7 ms for 8-16-8
        at radius 0.5 on one core (benchmarks/runtimes.py), 10 ms for 8-32-16-8 at radius 0.1,
        seconds at 0.5 (benchmarks/exact_search.py).

    References:
        - Jordan and Dimakis (2020), "Exactly computing the local Lipschitz constant of ReLU
          networks", arXiv:2003.01219, the problem, its hardness and a mixed-integer program for it.
        - Dutertre and de Moura (2006), "A fast linear-arithmetic solver for DPLL(T)",
          doi:10.1007/11817963_11, how patterns are found to be consistent.
        - Bland (1977), "New finite pivoting rules for the simplex method",
          doi:10.1287/moor.2.2.103, the rule by which that ends.
        - The search and its proof: docs/exact-search.md.

    See Also:
        ExactBound: decisions without tolerance.
    """
    chain, point, reach = _prepared(network, center, radius, domain, input_norm, output)
    if not (relative >= 0 and absolute >= 0 and max(relative, absolute) > 0):
        raise InvalidParameter(
            "relative, absolute: expected numbers of at least 0, one of them above 0"
        )
    search = PatternSearch(
        chain,
        point,
        *_ball(domain, point, reach),
        Goal.LARGEST,
        relative=relative,
        absolute=absolute,
        limits=limits or Limits(),
    )
    search.run()
    return _result(search)


class ExactBound(LipschitzBound):
    """The exact local Lipschitz constant of a ReLU chain, for l-infinity balls, as a bound for the
    privacy test.

    Guarantee:
        ``at_most(region, P)`` and ``levels`` answer with the mathematical truth of "L <= P" about
        the float64 weights, where L is the largest norm of the Jacobian over activation patterns
        consistent with a point of the closed region. They have no tolerance and no limit, and do
        not depend on the order of the search, on the batch, or on threads. They are monotone under
        inclusion because L is: points at distance at most R have levels that differ by at most 1.
        ``bound`` is at least L and at most L (1 + ``relative``). It is monotone only up to that, so
        it serves calibration and reports, never a decision. Proof: docs/exact-search.md. The *time*
        that a decision takes depends on the point and has no useful bound. Therefore
        ``cost_is_public`` is False, and ``PosthocEncoder`` takes this certificate on the global
        path alone.

    Args:
        network: linear layers with ReLU between them, at most 14 inputs.
        domain: the public box of its inputs.
        input_norm: l-infinity.
        output: l1 (up to 12 outputs), linf or "spread".
        relative: the relative tolerance of ``bound``.
        limits: when ``bound`` gives up, by raising. Decisions never give up.

    Raises:
        UnsupportedNetwork: the network is no chain of linear layers and ReLU.
        UnsupportedNorm: balls are l1 or l2, inputs or outputs are too many, or outputs are l2.

    Example:
        >>> from reticent.networks import affine_chain
        >>> net = affine_chain(
        ...     [[[1.0], [1.0]], [[1.0, 2.0]]], [[0.0, -1.0], [0.0]]
        ... )  # slope 0, then 1 from 0, then 3 from 1
        >>> bound = ExactBound(net, domain=Box.cube(1, 4.0), input_norm=Norm.LINF, output=Norm.L1)
        >>> [round(float(u), 4) for u in bound.bound([[-0.5], [0.5]], 1.0)]
        [1.0, 3.0]

    Utility:
        The exact constant: 1 where intervals have 4.3 and layered 1.3 on trained 8-32-16-8
        networks (docs/certificates.md).

    Runtime:
        Exponential in the number of neurons that can change sides: 6 ms a point for 8-16-8 at
        radius 0.5 on one core (benchmarks/runtimes.py), seconds for 8-32-16-8. It depends on the
        point and has no useful bound.

    References:
        - Jordan and Dimakis (2020), "Exactly computing the local Lipschitz constant of ReLU
          networks", arXiv:2003.01219, the problem and its hardness.
        - Dutertre and de Moura (2006), "A fast linear-arithmetic solver for DPLL(T)",
          doi:10.1007/11817963_11, how patterns are found to be consistent.
        - Decisions and their proof: docs/exact-search.md.

    See Also:
        reticent.lipschitz.LayeredBound: a bound at a public cost.
        papers.posthoc.exact.constants.lipschitz_constant: one constant, with a witness.
    """

    kind: ClassVar[str] = "exact"
    affordable_points = 100
    cost_is_public: ClassVar[bool] = False

    def __init__(
        self,
        network: Network,
        *,
        domain: Box,
        input_norm: Norm,
        output: Output,
        relative: float = RELATIVE,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(network, domain=domain, input_norm=input_norm, output=output)
        if self.input_norm is not Norm.LINF:
            raise UnsupportedNorm(
                f"exact search: input_norm={self.input_norm.value}; expected linf"
            )
        self.relative = positive(relative, name="relative")
        self.limits = limits or Limits()
        self._cheap = bound_of(
            "auto", network, domain=domain, input_norm=self.input_norm, output=self.output
        )
        # The domain rounded outward to the grid: what regions are cut to.
        whole = self._cheap.region(domain.center[None], np.array([np.inf])).box
        self._whole = Box(whole.lower[0] * whole.unit, whole.upper[0] * whole.unit)
        self._chain = ReluChain(network, domain=self._whole, output=self.output)

    @property
    @override
    def input_step(self) -> float:
        return self._cheap.input_step

    @property
    @override
    def _rows_at_once(self) -> int:
        return 2**10

    @override
    def _bound_region(self, region: Region) -> Array:
        found = np.empty(len(region))
        for row in range(len(region)):
            search = self._search(
                region, row, Goal.LARGEST, relative=0.5 * self.relative, limits=self.limits
            )
            search.run()
            found[row] = _result(search).upper
        return found

    @override
    def at_most(self, region: Region, limit: float) -> npt.NDArray[np.bool_]:
        """Return the exact truth of "L is at most ``limit``" over each prepared region, shape
        (n,).
        """
        holds = self._cheap.at_most(
            region, limit
        )  # an upper bound on L: where it holds, so does L <= limit
        for row in np.flatnonzero(~holds):
            holds[row] = not self._exceeds(region, int(row), limit)
        return holds

    def _exceeds(self, region: Region, row: int, limit: float) -> bool:
        search = self._search(region, row, Goal.DECIDE, threshold=float(limit))
        search.run()
        return search.exceeded

    @override
    def global_bound(self) -> float:
        """Return an upper bound over the whole domain, as a search of a fixed number of nodes
        proves it.
        """
        region = self._whole_domain()
        search = self._search(region, 0, Goal.LARGEST, relative=0.5 * self.relative)
        # The domain is public, and so is how far the search comes. The rest of it is bounded.
        while search.nodes < _GLOBAL_NODES and not search.advance():
            pass
        return min(search.value_bound, self._cheap.global_bound(), self.ceiling)

    def _search(
        self,
        region: Region,
        row: int,
        goal: Goal,
        *,
        threshold: float = 0.0,
        relative: float = 0.0,
        limits: Limits | None = None,
    ) -> PatternSearch:
        box, step = region.box, self.input_step
        return PatternSearch(
            self._chain,
            np.clip(region.centers[row], box.lower[row], box.upper[row]) * step,
            box.lower[row] * box.unit,
            box.upper[row] * box.unit,
            goal,
            threshold=threshold,
            relative=relative,
            limits=limits or Limits(),
        )


def _prepared(
    network: Network,
    center: npt.ArrayLike,
    radius: float,
    domain: Box,
    input_norm: Norm,
    output: Output,
) -> tuple[ReluChain, Array, float]:
    if domain.dimension != network.input_dimension:
        raise InvalidInput(
            f"domain: has {domain.dimension} coordinates, the network takes "
            f"{network.input_dimension}; expected the same"
        )
    if Norm.parse(input_norm) is not Norm.LINF:
        raise UnsupportedNorm(
            f"exact search: input_norm={Norm.parse(input_norm).value}; expected linf"
        )
    point = domain.clip(
        finite_array(np.asarray(center)[None], name="center", ndim=2, columns=domain.dimension)
    )[0]
    if not radius >= 0:
        raise InvalidParameter(f"radius={radius!r}: expected a number of at least 0")
    return ReluChain(network, domain=domain, output=parse_output(output)), point, float(radius)


def _ball(domain: Box, center: Array, radius: float) -> tuple[Array, Array]:
    return np.maximum(center - radius, domain.lower), np.minimum(center + radius, domain.upper)


def _result(search: PatternSearch) -> ExactResult:
    if search.witness is None or search.pattern is None:
        raise CertificationFailed(
            "exact search: ended without a point; expected a box that holds one"
        )
    error = search.chain.value_error
    return ExactResult(
        value=search.best,
        lower=max(0.0, search.best - error),
        upper=search.value_bound,
        witness=search.witness,
        pattern=search.pattern,
        nodes=search.nodes,
    )
