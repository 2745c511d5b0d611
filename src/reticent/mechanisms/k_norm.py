"""K-norm noise, which moves the whole vector with a probability that depends on the move's
l-infinity or l2 norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidParameter, UnsupportedNorm
from reticent.core.norms import Norm
from reticent.mechanisms.additive import AdditiveMechanism
from reticent.noise import Sampler, k_norm, l2_epsilon_margin
from reticent.noise.samplers import checked_scale

_ROUND_UP = 1.0 + 2.0**-50

MOST_L2_COORDINATES = 64
"""Largest number of coordinates for which noise in l2 is sampled."""


@dataclass(frozen=True, kw_only=True)
class KNormMechanism(AdditiveMechanism):
    """A vector that is moved by u with probability proportional to exp(-||u|| / scale), in
    l-infinity or l2.

    **Guarantee.** If the values of any two neighbours under ``adjacency`` differ by at most
    ``sensitivity`` in **output_norm**, and each is computed to within ``evaluation_error`` per
    coordinate, one released row is (epsilon, 0)-private.

    *Why.* On the grid the values are integer vectors at most D = ``steps_sensitivity`` apart, and
    the noise v has probability proportional to exp(-||v|| epsilon / D), or with ||v|| rounded up
    for l2, where D is then an integer. The triangle inequality does the rest: ceil(||v + w||) <=
    ceil(||v||) + ceil(||w||).

    *Floating point.* l-infinity noise is exact, in integers only. For l2 every probability is right
    to a relative m^3 2^-39. That is charged (``noise.l2_epsilon_margin``), so the stated epsilon
    holds.

    Attributes:
        output_norm: ``LINF``, or ``L2`` with at most 64 coordinates.

    Example:
        >>> from reticent.core import Neighborhood
        >>> from reticent.noise import SecureSampler
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> mechanism = KNormMechanism(
        ...     sensitivity=1.0, epsilon=2.0, dimension=3, adjacency=near, output_norm=Norm.LINF
        ... )
        >>> (
        ...     round(mechanism.scale, 4),
        ...     mechanism.release([[0.0, 1.0, 2.0]], sampler=SecureSampler()).shape,
        ... )
        (0.5, (1, 3))

    Utility:
        With b = scale and m coordinates the norm of the noise is m b on average. The root mean
        square error of a coordinate is b sqrt((m + 1)(m + 2) / 3) for l-infinity and b sqrt(m + 1)
        for l2, which is 5.5 b and 3 b for m = 8. Independent Laplace noise has 1.41 times its own
        scale. So l-infinity noise is the better one where the l1 sensitivity exceeds
        sqrt((m + 1)(m + 2) / 6) times the l-infinity one. That is 1.4 times for m = 2 and 3.9 times
        for m = 8, where at most m times is possible.

    Runtime:
        O(m) a row and proposal, with a bounded mean number of proposals. A row of 8 takes 0.9
        (l-infinity) and 4 (l2) microseconds on one core (benchmarks/runtimes.py).

    References:
        - Hardt and Talwar (2010), "On the geometry of differential privacy", arXiv:0907.3754,
          section 4. The exact integer form is derived in docs/mechanisms.md.

    See Also:
        reticent.mechanisms.LaplaceMechanism: l1 sensitivities.
        reticent.mechanisms.GaussianMechanism: l2 sensitivities with a delta, any dimension.
        reticent.noise.k_norm: the sampler.
    """

    output_norm: Norm

    name: ClassVar[str] = "K-norm"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "output_norm", Norm.parse(self.output_norm))
        if self.output_norm is Norm.L1:
            raise UnsupportedNorm(
                "output_norm='l1': K-norm noise in l1 is independent Laplace noise; use "
                "LaplaceMechanism"
            )
        if self.output_norm is Norm.L2:
            if self.dimension > MOST_L2_COORDINATES:
                raise UnsupportedNorm(
                    f"dimension={self.dimension}: expected at most {MOST_L2_COORDINATES} for "
                    "l2; use GaussianMechanism"
                )
            least = 4.0 * l2_epsilon_margin(self.dimension)
            if self.epsilon < least:
                raise InvalidParameter(
                    f"epsilon={self.epsilon!r}: expected at least {least:.1e} for l2 noise"
                )
        checked_scale(max(1.0, (self.dimension + 1) / 4.0) * self.steps_scale, "scale")

    @property
    def norm(self) -> Norm:
        """``output_norm``."""
        return self.output_norm

    @cached_property
    def steps_sensitivity(self) -> float:
        """Sensitivity in grid steps, as for every additive mechanism. For l2 it is the next
        integer, because its noise is of norms rounded up.
        """
        bound = self._distance_in_steps()
        return float(np.ceil(bound)) if self.output_norm is Norm.L2 else bound

    @cached_property
    def steps_scale(self) -> float:
        """``steps_sensitivity`` over epsilon (less the arithmetic's charge for l2), rounded up."""
        charge = l2_epsilon_margin(self.dimension) if self.output_norm is Norm.L2 else 0.0
        return self.steps_sensitivity / (self.epsilon - charge) * _ROUND_UP

    @property
    def metric_offset(self) -> float:
        """Loss that the grid adds at any distance. Two values r apart lose at most epsilon r /
        sensitivity + this.

        *Why.* Values r apart are integer vectors at most r / step + (1 + 2 evaluation_error /
        step) ||(1, ..., 1)|| apart, which l2 rounds up (in one dimension they are whole as it
        is). A step costs 1 / ``steps_scale``, and that is at least sensitivity / (epsilon step).
        The l2 sampler's arithmetic is charged at every distance.
        """
        l2 = self.output_norm is Norm.L2
        ones = self.norm.of_ones(self.dimension)
        steps = ones * (1.0 + 2.0 * self.evaluation_error / self.grid.step) + (
            1.0 if l2 and self.dimension > 1 else 0.0
        )
        return (steps / self.steps_scale + (l2_epsilon_margin(self.dimension) if l2 else 0.0)) * (
            1.0 + 2.0**-40
        )

    def _log_weight(self, noise: Integers) -> Array:
        lengths = self.norm.of(noise)
        return np.asarray(
            -(np.ceil(lengths) if self.output_norm is Norm.L2 else lengths) / self.steps_scale
        )

    def draw(self, rows: int, *, sampler: Sampler) -> Integers:
        """Draw vectors of the K-norm distribution, shape (rows, dimension)."""
        return k_norm(
            rows, self.dimension, scale=self.steps_scale, norm=self.output_norm, sampler=sampler
        )
