"""Independent Laplace noise in each coordinate, for sensitivities measured in l1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from reticent.core.norms import Norm
from reticent.mechanisms.additive import AdditiveMechanism, Integers
from reticent.noise import Sampler

_ROUND_UP = 1.0 + 2.0**-50


@dataclass(frozen=True, kw_only=True)
class LaplaceMechanism(AdditiveMechanism):
    """A vector with probability proportional to exp(-||u||_1 / scale) of being moved by u.

    **Guarantee.** If the values of any two neighbours under ``adjacency`` differ by at most
    ``sensitivity`` in **l1**, and each is computed to within ``evaluation_error`` per coordinate,
    one released row is (epsilon, 0)-private.

    *Why.* On the grid the values are integer vectors at most D = ``steps_sensitivity`` apart in l1,
    and integer noise v has probability proportional to exp(-||v||_1 epsilon / D). By the triangle
    inequality a shift by D changes that by at most e^epsilon.

    *Floating point.* Exact: the noise is an exact integer distribution, rounding is part of the
    sensitivity, and the result is a fixed function of an integer.

    *The caller ensures* the sensitivity: an l-infinity bound here would be too small by up to a
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

    Reference: Dwork, McSherry, Nissim and Smith (2006), proposition 1; discrete form: Ghosh,
    Roughgarden and Sundararajan (2009).
    """

    name: ClassVar[str] = "Laplace"

    @property
    def norm(self) -> Norm:
        """The l1 norm."""
        return Norm.L1

    @cached_property
    def steps_scale(self) -> float:
        """``steps_sensitivity`` over epsilon, rounded up."""
        return self.steps_sensitivity / self.epsilon * _ROUND_UP

    def draw(self, rows: int, *, sampler: Sampler) -> Integers:
        """Independent discrete Laplace variables, shape (rows, dimension)."""
        return sampler.discrete_laplace((rows, self.dimension), scale=self.steps_scale)
