"""The stability radius psi(x) = sup { r : L(x, r) <= P } and its levels, for whole batches.

psi is 1-Lipschitz because ball(x', r - t) lies inside ball(x, r) when d(x, x') <= t. With an
isotone bound in the place of L the same argument holds, and it holds *exactly* for what is computed
here. Centers are moved to the bound's public grid, radii are whole multiples of its step, and the
bound itself rounds nothing inward.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidParameter
from reticent.lipschitz.bounds import LipschitzBound


@dataclass(frozen=True, eq=False)
class LevelTest:
    """The number of whole neighbourhood radii between a point and where the proposal fails.

    Level l of x is the largest l in 1..max_level such that the bound on the ball of radius l * R
    around x is at most the proposal, or 0 if there is none. R is ``radius`` plus what rounding
    centers to the grid can add.

    Guarantee:
        Points at distance at most ``radius`` have levels that differ by at most 1. If f moves by
        more than ``proposal`` times that R between two such points, both have level 0. Proof:
        docs/certificates.md.

    Differs from the paper:
        No radius is set aside before levels are counted. Setting it aside keeps a *continuous*
        stability away from 0 at bad pairs. A level is 0 there anyway, because the bound fails on
        the ball of radius R. Every point gains one level, at the same cost.

    Attributes:
        bound: the isotone bound.
        proposal: P, above 0.
        radius: R, above 0.
        max_level: the largest level. Higher ones are reported as it.

    Utility:
        Whole radii are counted: at most one radius less than psi, and no radius set aside. A
        tighter bound gives more levels for the same proposal.

    Runtime:
        At most log2(max_level) + 1 evaluations of the bound a point: 9 to 15 microseconds for ten
        levels of the layered bound on 8-16-8 on one core (benchmarks/runtimes.py).

    References:
        - Dwork and Lei (2009), "Differential privacy and robust statistics",
          doi:10.1145/1536414.1536466, which introduces propose-test-release.
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), algorithm 1 and lemma A.2, the radius of a proposed Lipschitz bound.
        - Levels and their proof: docs/certificates.md.

    See Also:
        reticent.lipschitz.stability_radius: the radius itself, on a grid.
        reticent.mechanisms.ProposeTestRelease: the mechanism that uses levels.
    """

    bound: LipschitzBound
    proposal: float
    radius: float
    max_level: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "proposal", positive(self.proposal, name="proposal"))
        object.__setattr__(self, "radius", positive(self.radius, name="radius"))
        object.__setattr__(self, "max_level", count(self.max_level, name="max_level"))
        _ = self.radius_steps

    @cached_property
    def radius_steps(self) -> int:
        """R in whole grid steps, the rounding of two centers included."""
        return grid_radius(self.bound, self.radius)

    def levels(self, points: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the level of each point, shape (n,).

        The bound chooses the method (``LipschitzBound.levels``): a binary search over isotone
        bounds, or one search for the nearest violation where the bound is exact.

        Args:
            points: shape (n, d), finite.
        """
        return self.levels_on_grid(snap(self.bound, points))

    def levels_on_grid(self, centers: Array) -> npt.NDArray[np.int64]:
        """Return the level of each point that ``snap`` gave, in whole grid steps, shape (n,).

        Nothing is checked again.
        """
        return self.bound.levels(
            centers, self.radius_steps, limit=self.proposal, max_level=self.max_level
        )


def stability_radius(
    bound: LipschitzBound,
    points: npt.ArrayLike,
    *,
    proposal: float,
    max_radius: float,
    tolerance: float,
) -> Array:
    """Return psi on a fixed grid, the largest multiple of ``tolerance`` up to ``max_radius`` at
    which the bound is at most P.

    Args:
        bound: an isotone bound.
        points: shape (n, d), finite.
        proposal: P, above 0.
        max_radius: the cap on the answer, above 0.
        tolerance: the step of the answers, above 0. psi changes by at most distance + tolerance +
            what rounding centers to the grid adds (one step in l-infinity, d steps in l1).

    Returns:
        Shape (n,), in [0, max_radius], and 0 where the bound already exceeds P at the first step.

    Example:
        >>> from reticent.lipschitz import IntervalBound
        >>> from reticent.core import Box, Norm
        >>> from reticent.networks import affine_chain
        >>> net = affine_chain([[[1.0]], [[1.0]]], [[0.0], [0.0]])  # max(x, 0)
        >>> bound = IntervalBound(
        ...     net, domain=Box.cube(1, 4.0), input_norm=Norm.LINF, output=Norm.L1
        ... )
        >>> stability_radius(bound, [[-2.0]], proposal=0.5, max_radius=3.0, tolerance=0.25).tolist()
        [1.75]

    Utility:
        At most ``tolerance`` below the largest radius at which the bound is at most P.

    Runtime:
        log2(max_radius / tolerance) evaluations of the bound a point: 15 to 30 microseconds for 100
        steps of the layered bound on 8-16-8 on one core (benchmarks/runtimes.py).

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), supplement A, the query gamma and its lower bound phi.
        - Dwork and Lei (2009), "Differential privacy and robust statistics",
          doi:10.1145/1536414.1536466, which introduces propose-test-release.

    See Also:
        reticent.lipschitz.LevelTest: whole radii, for the optimal test.
        reticent.published.PublishedPosthoc: the published test, which uses it.
    """
    steps = count(
        ceil(positive(max_radius, name="max_radius") / positive(tolerance, name="tolerance")),
        name="steps",
    )
    ladder = LevelTest(bound, proposal, tolerance, steps)
    centers = finite_array(points, name="points", ndim=2, columns=bound.domain.dimension)
    return np.asarray(np.minimum(ladder.levels(centers) * tolerance, max_radius))


def snap(bound: LipschitzBound, points: npt.ArrayLike) -> Array:
    """Return ``points`` clipped to the domain, in whole grid steps, shape (n, d).

    Utility:
        Exact within the domain but for half a step a coordinate, which ``grid_radius`` adds to the
        radius.

    Runtime:
        O(n d).

    References:
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264, why values are rounded to a public grid first.

    See Also:
        reticent.lipschitz.grid_radius: the amount that this adds to a radius.
        reticent.lipschitz.LevelTest: both in use.
    """
    array = finite_array(points, name="points", ndim=2, columns=bound.domain.dimension)
    return np.asarray(np.round(bound.domain.clip(array) / bound.input_step))


def grid_radius(bound: LipschitzBound, radius: float) -> int:
    """Return ``radius`` in whole grid steps plus what rounding both ends of a pair to the grid can
    add.

    Raises:
        InvalidParameter: the radius is so small that this would add more than a few per cent to it,
            or so large that whole steps are not exact. No domain is that wide.

    Utility:
        At most a few per cent above the radius itself. More is refused.

    Runtime:
        O(1).

    References:
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264, why values are rounded to a public grid first.

    See Also:
        reticent.lipschitz.snap: the rounding.
        reticent.lipschitz.LevelTest: both in use.
    """
    if not radius >= 2**10 * bound.input_step:
        raise InvalidParameter(
            f"radius={radius!r}: expected at least 1024 grid steps of {bound.input_step:g}"
        )
    if not radius <= 2.0**52 * bound.input_step:
        raise InvalidParameter(
            f"radius={radius!r}: expected at most 2**52 grid steps of {bound.input_step:g}; a "
            "ball around any point is the whole "
            "domain long before"
        )
    return ceil(radius / bound.input_step) + ceil(bound.input_norm.of_ones(bound.domain.dimension))
