"""Independent Laplace noise in each coordinate, for l1 sensitivities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.core.norms import Norm
from reticent.mechanisms.additive import AdditiveMechanism
from reticent.noise import Sampler
from reticent.noise.samplers import checked_scale

_ROUND_UP = 1.0 + 2.0**-50


@dataclass(frozen=True, kw_only=True)
class LaplaceMechanism(AdditiveMechanism):
    """A vector that is moved by u with probability proportional to exp(-||u||_1 / scale).

    **Guarantee.** If the values of any two neighbours under ``adjacency`` differ by at most
    ``sensitivity`` in **l1**, and each is computed to within ``evaluation_error`` per coordinate,
    one released row is (epsilon, 0)-private.

    *Why.* On the grid the values are integer vectors at most D = ``steps_sensitivity`` apart in l1,
    and integer noise v has probability proportional to exp(-||v||_1 epsilon / D). By the triangle
    inequality a shift by D changes that by at most e^epsilon.

    *Floating point.* The noise is an exact integer distribution, rounding is part of the
    sensitivity, and the result is a fixed function of an integer. So the guarantee is exact.

    *The caller ensures* the sensitivity. An l-infinity bound here would be too small by up to a
    factor m.

    Example:
        >>> from reticent.core import Neighborhood, Norm
        >>> from reticent.noise import SecureSampler
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> mechanism = LaplaceMechanism(sensitivity=1.0, epsilon=2.0, dimension=3, adjacency=near)
        >>> (
        ...     round(mechanism.scale, 4),
        ...     mechanism.release([[0.0, 1.0, 2.0]], sampler=SecureSampler()).shape,
        ... )
        (0.5, (1, 3))

    Utility:
        A coordinate errs by scale = sensitivity / epsilon on average (1.41 of that in root mean
        square), and the worst of m by about (ln m + 0.58) scale. That is 1 and 2.7 for m = 8 at
        sensitivity = epsilon = 1.

    Runtime:
        O(m) a row, 0.4 microseconds for 8 coordinates on one core (benchmarks/runtimes.py).

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, proposition 1.
        - Ghosh, Roughgarden and Sundararajan (2009), "Universally utility-maximizing privacy
          mechanisms", arXiv:0811.2841 (the discrete form).
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264 (the reason for discrete noise).

    See Also:
        reticent.mechanisms.KNormMechanism: l-infinity and l2 sensitivities.
        reticent.mechanisms.GaussianMechanism: l2 sensitivities, with a delta.
    """

    name: ClassVar[str] = "Laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_scale(self.steps_scale, "scale")

    @property
    def norm(self) -> Norm:
        """The l1 norm."""
        return Norm.L1

    @cached_property
    def steps_scale(self) -> float:
        """``steps_sensitivity`` over epsilon, rounded up."""
        return self.steps_sensitivity / self.epsilon * _ROUND_UP

    def _log_weight(self, noise: Integers) -> Array:
        return np.asarray(-self.norm.of(noise) / self.steps_scale)

    def draw(self, rows: int, *, sampler: Sampler) -> Integers:
        """Draw independent discrete Laplace variables, shape (rows, dimension)."""
        return sampler.discrete_laplace((rows, self.dimension), scale=self.steps_scale)
