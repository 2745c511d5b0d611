"""The interface of every isotone bound on a local Lipschitz constant, and the regions it is asked
about.

A bound is *isotone* (monotone under inclusion) if it never grows when the region shrinks to one
inside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName, UnsupportedNorm
from reticent.core.norms import Norm, sign_patterns
from reticent.core.regions import Box
from reticent.core.rounding import sum_error
from reticent.grids.arithmetic import Interval, around
from reticent.lipschitz.norm_products import norm_product
from reticent.networks.network import Network

Output = Norm | Literal["spread"]
"""The measure of output changes: a norm, or *spread*, the largest |change of v_i - v_j| of two
logits.
"""

MAX_SIGN_OUTPUTS = 12
"""Up to this many outputs the l1 norm is bounded by enumerating output signs. Beyond, it is bounded
by the sum over outputs.
"""


@dataclass(frozen=True, eq=False)
class Functionals:
    """Linear functionals a of the output, and how bounds on |a . change| combine into the output
    measure.

    Attributes:
        rows: shape (k, m), entries -1, 0 or 1, one of each pair {a, -a}.
        combine: "max" (exact for l1 by signs, l-infinity and spread), "sum" (the fallback for l1)
            or "l2".
    """

    rows: Array
    combine: Literal["max", "sum", "l2"]

    @classmethod
    def of(cls, output: Output, outputs: int) -> Functionals:
        """Return the functionals that measure ``output`` on vectors of ``outputs`` entries."""
        if output == "spread":
            if outputs < 2:
                raise UnsupportedNorm(f"spread of {outputs} output(s): expected at least 2")
            first, second = np.triu_indices(outputs, 1)
            return cls(np.eye(outputs)[first] - np.eye(outputs)[second], "max")
        if output is Norm.L1 and outputs <= MAX_SIGN_OUTPUTS:
            return cls(sign_patterns(outputs, up_to_sign=True), "max")
        combine: dict[Norm, Literal["max", "sum", "l2"]] = {
            Norm.L1: "sum",
            Norm.LINF: "max",
            Norm.L2: "l2",
        }
        return cls(np.eye(outputs), combine[Norm(output)])


def parse_output(name: str | Norm) -> Output:
    """Return the output measure called ``name``: l1, l2, linf or spread.

    Raises:
        UnknownName: ``name`` is none of these.
    """
    if name == "spread":
        return "spread"
    try:
        return Norm(name)
    except ValueError:
        raise UnknownName(f"output={name!r}: expected l1, l2, linf or spread") from None


@dataclass(frozen=True, eq=False)
class Region:
    """A batch of balls, each cut to the public domain.

    Attributes:
        box: the smallest grid boxes around the balls, shape (n, d).
        centers: whole multiples of the grid step, shape (n, d). Only l1 and l2 balls use them.
        radii: whole multiples of the grid step, shape (n, 1), at least the true radius plus the
            rounding of centers.
    """

    box: Interval
    centers: Array
    radii: Array

    def __len__(self) -> int:
        return len(self.centers)

    def part(self, rows: slice) -> Region:
        """Return some of the balls."""
        box = Interval(self.box.lower[rows], self.box.upper[rows], self.box.unit)
        return Region(box, self.centers[rows], self.radii[rows])


class LipschitzBound(ABC):
    """A sound upper bound on the local Lipschitz constant of a network, monotone under inclusion.

    Guarantee:
        ``bound(x, r)`` is at least the Lipschitz constant of the network on the ball of radius r
        around x, cut to the public domain. If ball(x', r') lies inside ball(x, r), then
        ``bound(x', r') <= bound(x, r)``. This holds to the last bit and for every batch. For l1 and
        l2 balls it holds after centers are moved to the grid of step ``input_step``. Proof:
        docs/certificates.md.

    Attributes:
        network: the network whose constant is bounded.
        domain: the public box that inputs are clipped to.
        input_norm: norm of the ball and of input changes.
        output: measure of output changes.
        affordable_points: the number of points that calibration may ask about each of many
            proposals.
        cost_is_public: True if the cost of a decision has a bound that no point can exceed. A bound
            without it may serve calibration and reports, but no release.

    Utility:
        Noise grows in proportion to the bound. At radius 0.5, l-infinity to l1, on trained
        8-32-16-8 networks the layered bound is 1.3 times the exact constant, intervals 3.1 times
        (docs/certificates.md, section 1).

    Runtime:
        From microseconds (one hidden layer) to seconds (exact search) a point. Each subclass states
        its own.

    References:
        - Zhang, Zhang and Hsieh (2019), "RecurJac: an efficient recursive algorithm for bounding
          Jacobian matrix of neural networks and its applications", arXiv:1810.11783, bounds on
          Jacobians over a neighbourhood.
        - Weng et al. (2018), "Towards fast computation of certified robustness for ReLU networks",
          arXiv:1804.09699, bounds on local Lipschitz constants of ReLU networks (Fast-Lip).
        - Why bounds must be isotone, and the proof: docs/certificates.md.

    See Also:
        reticent.lipschitz.IntervalBound: any network and norm.
        reticent.lipschitz.LayeredBound: ReLU networks of few inputs.
    """

    kind: ClassVar[str]
    affordable_points: int = 1000
    _asked_at_once: int = 32
    cost_is_public: ClassVar[bool] = True

    def __init__(self, network: Network, *, domain: Box, input_norm: Norm, output: Output) -> None:
        if domain.dimension != network.input_dimension:
            raise InvalidInput(
                f"domain: has {domain.dimension} coordinates, the network takes "
                f"{network.input_dimension}; expected the same"
            )
        self.network = network
        self.domain = domain
        self.input_norm = Norm.parse(input_norm)
        self.output = parse_output(output)
        self.functionals = Functionals.of(self.output, network.output_dimension)
        # A public constant that no region can exceed.
        self.ceiling = norm_product(network, self.input_norm, self.output)
        self._diameter = 4.0 * float(
            self.input_norm.of(domain.half_width)
        )  # twice, to be far from any rounding

    @property
    @abstractmethod
    def input_step(self) -> float:
        """The step of the public grid that inputs are rounded to, a power of two."""

    @abstractmethod
    def _bound_region(self, region: Region) -> Array:
        """Return the bound over each ball of ``region``, shape (n,)."""

    @property
    @abstractmethod
    def _rows_at_once(self) -> int:
        """The number of balls that fit in the working memory of one pass."""

    def bound(self, centers: npt.ArrayLike, radius: float | npt.ArrayLike) -> Array:
        """Return upper bounds on the Lipschitz constant over balls, shape (n,).

        Args:
            centers: shape (n, d), finite. Points outside the domain are clipped to it.
            radius: one radius or n radii, at least 0. Infinity covers the whole domain.

        Raises:
            InvalidInput: ``centers`` has the wrong shape, is empty, or holds NaN or infinity.
            InvalidParameter: a radius is negative or NaN.
        """
        points = self.domain.clip(
            finite_array(centers, name="centers", ndim=2, columns=self.domain.dimension)
        )
        radii = np.asarray(radius, dtype=np.float64)
        if radii.shape not in {(), (len(points),)}:
            raise InvalidInput(
                f"radius: expected one number or {len(points)}, got shape={radii.shape}"
            )
        if np.isnan(radii).any() or (radii < 0).any():
            raise InvalidParameter("radius: expected numbers of at least 0")
        radii = np.broadcast_to(radii, (len(points),))
        return self.bound_over(self.region(points, radii))

    def bound_over(self, region: Region) -> Array:
        """Return upper bounds over prepared regions, shape (n,)."""
        parts = [
            self._bound_region(region.part(rows))
            for rows in slices(len(region), self._rows_at_once)
        ]
        return np.minimum(np.concatenate(parts), self.ceiling)

    def at_most(self, region: Region, limit: float) -> npt.NDArray[np.bool_]:
        """Return True for each prepared region whose bound is at most ``limit``, shape (n,).

        The answers are those of ``bound_over(region) <= limit``. Bounds that can decide sooner
        override it.
        """
        return np.asarray(self.bound_over(region) <= limit)

    def levels(
        self, centers: Array, radius_steps: int, *, limit: float, max_level: int
    ) -> npt.NDArray[np.int64]:
        """Return the largest l up to ``max_level`` for which the bound on the ball of l *
        radius_steps is at most ``limit``, or else 0.

        The question at the largest radius comes first, because it settles most points. A binary
        search does the rest, which is valid because the bound grows with the radius. For a few
        points one pass asks about all radii, which costs less than several. Bounds that can decide
        sooner override it, with the same answers.

        Args:
            centers: whole grid steps, shape (n, d).
            radius_steps: the radius of one level in whole grid steps.
            limit: P, the proposed bound.
            max_level: the largest level. Higher ones are reported as it.
        """
        if len(centers) * max_level <= self._asked_at_once:
            # As the bound grows with the radius, the levels at which it holds come first.
            radii = float(radius_steps) * np.tile(np.arange(1.0, max_level + 1.0), len(centers))
            balls = self.region_on_grid(np.repeat(centers, max_level, axis=0), radii)
            return np.asarray(
                self.at_most(balls, limit).reshape(len(centers), max_level).sum(axis=1)
            )
        low = np.zeros(len(centers), dtype=np.int64)
        high = np.full(len(centers), max_level, dtype=np.int64)
        ask = high.copy()
        open_points = np.arange(len(centers))
        while len(open_points):
            radii = ask[open_points].astype(np.float64) * float(radius_steps)
            holds = self.at_most(self.region_on_grid(centers[open_points], radii), limit)
            low[open_points[holds]] = ask[open_points[holds]]
            high[open_points[~holds]] = ask[open_points[~holds]] - 1
            open_points = open_points[low[open_points] < high[open_points]]
            ask = (low + high + 1) // 2
        return low

    def global_bound(self) -> float:
        """Return an upper bound on the Lipschitz constant over the whole domain."""
        return float(self.bound(self.domain.center[None, :], np.inf)[0])

    def region(self, points: Array, radii: Array) -> Region:
        """Return the balls around ``points`` (inside the domain) as grid intervals, rounded
        outward.
        """
        step = self.input_step
        lower_end, upper_end = self._grid_domain
        # From the diameter on, a ball around a point of the domain is the whole domain.
        radii = np.minimum(radii, self._diameter)
        lower = np.floor((points - radii[:, None]) / step)
        upper = np.ceil((points + radii[:, None]) / step)
        box = Interval(np.maximum(lower, lower_end), np.minimum(upper, upper_end), step)
        rounding = ceil(0.5 * self.input_norm.of_ones(points.shape[1]))
        return Region(box, np.round(points / step), np.ceil(radii[:, None] / step) + rounding)

    @cached_property
    def _grid_domain(self) -> tuple[Array, Array]:
        """The ends of the domain in whole steps, rounded outward."""
        step = self.input_step
        return around(self.domain.lower, step).lower, around(self.domain.upper, step).upper

    def _whole_domain(self) -> Region:
        return self.region(self.domain.center[None], np.array([np.inf]))

    def region_on_grid(self, centers: Array, radii: Array) -> Region:
        """Return the balls of ``radii`` (shape (n,)) around ``centers``, both in whole steps.
        Nothing is rounded.

        Raises:
            InvalidInput: a radius is negative, or a center is off the grid or outside the domain
                (rounded outward to the grid). Around such a center the cut ball may be empty, and
                smaller balls need not lie inside larger ones.
        """
        lower_end, upper_end = self._grid_domain
        inside = (centers >= lower_end) & (centers <= upper_end) & (centers == np.floor(centers))
        if not inside.all() or not (radii >= 0).all():
            raise InvalidInput(
                "centers: expected whole grid steps inside the domain, and radii of at least "
                "0; use snap()"
            )
        reach = radii[:, None]
        lower, upper = (
            np.maximum(centers - reach, lower_end),
            np.minimum(centers + reach, upper_end),
        )
        return Region(Interval(lower, upper, self.input_step), centers, reach)


def slices(rows: int, at_once: int) -> Iterator[slice]:
    """Return consecutive slices of at most ``at_once`` of ``rows`` rows."""
    for start in range(0, rows, max(1, at_once)):
        yield slice(start, start + max(1, at_once))


def combine(per_functional: Array, how: Literal["max", "sum", "l2"]) -> Array:
    """Join bounds per functional, shape (n, k, ...), into the output measure, shape (n, ...).

    Each step is monotone in floating point as well, because entries are added in a fixed order. The
    margin covers as many roundings as there are entries.
    """
    if how == "max":
        return np.asarray(per_functional.max(axis=1))
    total = np.zeros_like(per_functional[:, 0])
    for column in np.moveaxis(per_functional, 1, 0):
        total = total + (np.square(column) if how == "l2" else column)
    margin = 1.0 + sum_error(per_functional.shape[1] + 4)
    return np.asarray((np.sqrt(total) if how == "l2" else total) * margin)
