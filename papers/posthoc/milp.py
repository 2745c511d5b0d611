"""The question of exact search put to a general solver: mixed-integer linear programs for HiGHS.

``milp_lipschitz`` answers what ``exact.constants.lipschitz_constant`` answers, by code that shares
nothing with it. It is an oracle: HiGHS works in floating point with tolerances (1e-9 here) on
constraints and integers, so a pattern that misses the box by that much can count as consistent, and
a bound is as good as HiGHS's arithmetic. No release rests on it.

One program per functional of the output (one per pair of output sign vectors for l1), the most
promising first; a functional whose bound over all slopes does not exceed what has been found is
never put to the solver, and only input signs along which it could be exceeded are left open in its
program. On trained 8-16-8 networks that is ten times faster than one program with the output's
signs as further binaries. Formulation: docs/exact-search.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, thread_time

import numpy as np
import numpy.typing as npt

from papers.posthoc.exact.search import Limits
from papers.posthoc.milp_model import Answer, Program, Variables
from papers.posthoc.milp_network import Bits, BoxedChain, Chain
from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import (
    CertificationFailed,
    InvalidInput,
    InvalidParameter,
    UnsupportedNetwork,
    UnsupportedNorm,
)
from reticent.core.norms import Norm, sign_patterns
from reticent.core.regions import Box
from reticent.lipschitz.bounds import Functionals, Output, parse_output
from reticent.lipschitz.layered import MAX_INPUTS
from reticent.networks.network import Network

STEP = 1e-8
"""Relative: an improvement by less is not looked for."""

_SAMPLES = 1024
_ABOVE = 1e-7  # relative: how far a solution's norm may miss what was asked
_CONSISTENT = (
    1e-6  # of the range of a neuron: a witness that misses its pattern by more is not believed
)


@dataclass(frozen=True, eq=False)
class MilpResult:
    """An answer of HiGHS, checked as far as a point can check it.

    Attributes:
        value: the Lipschitz constant: what the Jacobian of ``pattern`` measures.
        bound: no larger constant, by HiGHS's arithmetic.
        gap: bound - value.
        witness: a point of the ball, shape (n,).
        pattern: the activation pattern, shape (hidden neurons,).
        nodes: branch-and-bound nodes of all programs.
        programs: how many programs HiGHS was given.
    """

    value: float
    bound: float
    gap: float
    witness: Array
    pattern: Bits
    nodes: int
    programs: int


def milp_lipschitz(
    network: Network,
    center: npt.ArrayLike,
    radius: float,
    *,
    domain: Box,
    output: Output = Norm.L1,
    limits: Limits | None = None,
) -> MilpResult:
    """The Lipschitz constant of a ReLU chain on the l-infinity ball around ``center``, cut to
    ``domain``, by HiGHS.

    Floating-point MILP tolerances make it an oracle to compare with, not a certificate to release
    on.

    Args:
        network: linear layers with ReLU between them, at most 14 inputs.
        center: shape (n,), finite; clipped to the domain.
        radius: at least 0; infinity covers the whole domain.
        domain: the public box of the inputs.
        output: l1 (up to 12 outputs), linf or "spread".
        limits: nodes and processor time of all programs together; by default none.

    Raises:
        CertificationFailed: a limit was reached, or the solver failed. There is no partial answer.
        UnsupportedNetwork, UnsupportedNorm: another kind of network, more inputs or outputs, or
            output l2.

    Edge cases: as ``exact.lipschitz_constant``; a box in which no neuron changes sides takes no
    program at all. Weights whose ranges span more than about nine decades are beyond the solver's
    tolerances.

    Example:
        >>> from reticent.networks import affine_chain
        >>> net = affine_chain(
        ...     [[[1.0], [1.0]], [[1.0, 2.0]]], [[0.0, -1.0], [0.0]]
        ... )  # slope 0, then 1 from 0, then 3 from 1
        >>> found = milp_lipschitz(net, [0.0], 1.5, domain=Box.cube(1, 4.0))
        >>> round(found.value, 6)
        3.0

    Utility:
        Agrees with exact search to about 1e-6 on small networks; proved only as far as HiGHS's
        arithmetic is (docs/milp.md).

    Runtime:
        Exponential in the number of neurons that can change sides; 0.06 to 0.4 s for 8-16-8 at
        radius 0.5 on one core (benchmarks/runtimes.py), 10 to 60 times exact search.

    References:
        - Jordan and Dimakis (2020), "Exactly computing the local Lipschitz constant of ReLU
          networks", arXiv:2003.01219, the mixed-integer program.
        - Tjeng, Xiao and Tedrake (2019), "Evaluating robustness of neural networks with mixed
          integer programming", arXiv:1711.07356, mixed-integer models of ReLU networks.
        - Huangfu and Hall (2018), "Parallelizing the dual revised simplex method",
          doi:10.1007/s12532-017-0130-5, HiGHS.

    See Also:
        papers.posthoc.exact.constants.lipschitz_constant: the same by a search with proofs.
    """
    search = _Search(network, center, radius, domain, output, limits)
    boxed = search.ball(search.radius)
    best, witness, pattern = search.largest_sample()
    bounds = boxed.norm_bounds(search.signs)
    proved = min(float(bounds.max()), best * (1 + STEP))
    for functional in np.argsort(-bounds, kind="stable"):
        if bounds[functional] <= best * (1 + STEP):
            break
        found = search.solve(boxed, int(functional), best * (1 + STEP))
        if found is not None:
            proved = max(proved, found.bound)
            value = float(search.chain.norms(found.pattern[None])[0])
            if value > best:
                best, witness, pattern = value, found.point, found.pattern
    bound = max(best, proved, min(float(bounds.max()), best * (1 + STEP)))
    return MilpResult(best, bound, bound - best, witness, pattern, search.nodes, search.programs)


@dataclass(frozen=True, eq=False)
class _Found:
    bound: float
    point: Array
    pattern: Bits


class _Search:
    """One question about one ball: what was validated, and what has been spent."""

    def __init__(
        self,
        network: Network,
        center: npt.ArrayLike,
        radius: float,
        domain: Box,
        output: Output,
        limits: Limits | None,
    ) -> None:
        if domain.dimension != network.input_dimension:
            raise InvalidInput(
                f"domain: has {domain.dimension} coordinates, the network takes "
                f"{network.input_dimension}; expected the same"
            )
        if not radius >= 0:
            raise InvalidParameter(f"radius={radius!r}: expected a number of at least 0")
        self.chain = _chain(network, parse_output(output))
        point = finite_array(
            np.asarray(center)[None], name="center", ndim=2, columns=domain.dimension
        )[0]
        self.center, self.domain, self.radius = domain.clip(point), domain, float(radius)
        self.signs = sign_patterns(network.input_dimension)
        self.limits = limits or Limits()
        self.nodes = self.programs = 0
        self._began, self._began_at = thread_time(), monotonic()

    def ball(self, radius: float) -> BoxedChain:
        """The chain over a ball around the center, cut to the domain."""
        lower, upper = self.center - radius, self.center + radius
        return BoxedChain(
            self.chain, np.maximum(lower, self.domain.lower), np.minimum(upper, self.domain.upper)
        )

    def largest_sample(self) -> tuple[float, Array, Bits]:
        """The largest norm at some points of the ball, the point and its pattern: where to
        start.
        """
        points = self._samples(self.radius)
        patterns = self.chain.pre_activations(points) > 0
        norms = self.chain.norms(patterns)
        top = int(norms.argmax())
        return float(norms[top]), points[top], patterns[top]

    def _samples(self, radius: float) -> Array:
        """The center, and points at all distances from it, from a fixed seed; shape (1 +
        samples, n).
        """
        rng = np.random.default_rng(0)
        farthest = np.maximum(self.domain.upper - self.center, self.center - self.domain.lower)
        reach = rng.random((_SAMPLES, 1)) * np.minimum(radius, farthest)
        moved = self.center + reach * rng.uniform(-1.0, 1.0, size=(_SAMPLES, len(self.center)))
        return self.domain.clip(np.concatenate([self.center[None], moved]))

    def solve(self, boxed: BoxedChain, functional: int, floor: float) -> _Found | None:
        """The largest norm of a functional's gradient above ``floor``; None if there is none.

        Raises:
            CertificationFailed: a limit was reached, or what HiGHS found is not what it says.
        """
        along = boxed.bounds_along(self.signs, self.chain.functionals[functional][None])[0]
        program, point, slopes = boxed.points()
        norm = boxed.gradient_norm(program, slopes, functional, self.signs[along > floor])
        program.rows(floor, np.inf, (norm, np.ones((1, len(norm)))))
        answer = self._run(program, norm)
        if answer.values is None:
            return None
        where = np.clip(answer.values[point], boxed.lower, boxed.upper)
        pattern = np.concatenate([answer.values[slope] > 0.5 for slope in slopes])
        self._check(boxed, where, pattern, floor)
        return _Found(answer.bound, where, pattern)

    def _run(self, program: Program, objective: Variables) -> Answer:
        limit = self.limits.cpu_seconds
        cpu_seconds = None if limit is None else limit - (thread_time() - self._began)
        longest = self.limits.wall_seconds
        wall_seconds = None if longest is None else longest - (monotonic() - self._began_at)
        nodes = None if self.limits.nodes is None else max(0, self.limits.nodes - self.nodes)
        answer = program.solve(
            objective,
            cpu_seconds=cpu_seconds,
            wall_seconds=wall_seconds,
            nodes=nodes,
        )
        self.nodes += answer.nodes
        self.programs += 1
        if answer.status not in {"optimal", "infeasible"}:
            raise CertificationFailed(
                f"MILP: HiGHS stopped without an answer ({answer.status}) after "
                f"programs={self.programs}, nodes={self.nodes}; "
                f"limits: nodes={self.limits.nodes}, cpu_seconds={self.limits.cpu_seconds}, "
                f"wall_seconds={self.limits.wall_seconds}. "
                "Raise the limits or take a smaller radius"
            )
        return answer

    def _check(self, boxed: BoxedChain, point: Array, pattern: Bits, floor: float) -> None:
        """That the point is consistent with the pattern, and its norm large enough, up to the
        solver's tolerances.
        """
        values = self.chain.pre_activations(point[None])[0]
        low, high = (np.concatenate(ends) for ends in zip(*boxed.ranges, strict=True))
        missed = np.maximum(0.0, np.where(pattern, -values, values))
        norm = float(self.chain.norms(pattern[None])[0])
        if (missed > _CONSISTENT * (1.0 + high - low)).any() or norm < floor * (1 - _ABOVE / 2):
            raise CertificationFailed(
                "MILP: the solution of HiGHS misses its constraints; expected weights of fewer "
                "scales"
            )


def _chain(network: Network, output: Output) -> Chain:
    if not network.is_relu_chain():
        raise UnsupportedNetwork(
            "MILP: expected linear layers with ReLU between them; use the interval bound"
        )
    if network.input_dimension > MAX_INPUTS:
        raise UnsupportedNorm(
            f"MILP: {network.input_dimension} inputs, expected at most {MAX_INPUTS}; use the "
            "interval bound"
        )
    measured = Functionals.of(output, network.output_dimension)
    if measured.combine != "max":
        raise UnsupportedNorm(
            f"MILP: output={output!s} with {network.output_dimension} outputs; expected linf, "
            "spread, or l1 of at most 12"
        )
    layers = network.linear_layers()
    weights = [layer.dense() for layer in layers]
    return Chain(weights, [np.asarray(layer.bias) for layer in layers], measured.rows @ weights[-1])
