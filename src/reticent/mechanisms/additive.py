"""What the additive mechanisms share: a public grid, exact integer noise on it, and the
sensitivity measured in its steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Adjacency
from reticent.core.norms import Norm
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Grid, Sampler

_ROUND_UP = 1.0 + 2.0**-40
"""Factor by which derived sensitivities and scales are enlarged, to cover the rounding of a few
double operations.
"""


@dataclass(frozen=True, kw_only=True)
class AdditiveMechanism(Mechanism, ABC):
    """A vector plus noise from one distribution, on a public grid.

    The vector is rounded to multiples of a power of two that depends on the settings alone. Integer
    noise is added, and the sum is returned in output units. Rounding moves each coordinate by at
    most half a step, so neighbours at distance ``sensitivity`` are at most ``sensitivity / step +
    ||(1, ..., 1)||`` steps apart, and that is what the noise covers. Nothing about the result
    depends on how a double rounds: no bit of it tells which value the noise was added to.

    Attributes:
        sensitivity: largest distance of two neighbours' values in ``output_norm``, in output units,
            above 0.
        epsilon: above 0.
        dimension: number of coordinates m of a value.
        adjacency: definition of neighbours.
        evaluation_error: bound on |computed - true| in each coordinate, in output units. Added
            to the sensitivity twice.

    Utility:
        The error is the noise alone: rounding adds at most half a step per coordinate, at most
        2^-21 of the noise's own scale. Each subclass says how large the noise is.

    Runtime:
        O(m) for each row of m coordinates. Below 5 microseconds a row of 8 on one core, for every
        subclass here (benchmarks/runtimes.py).

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, which calibrates noise to sensitivity.
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264, on why noise in doubles is not enough and values are rounded
          to a grid first.

    See Also:
        reticent.mechanisms.LaplaceMechanism: independent noise, l1.
        reticent.mechanisms.KNormMechanism: one noise vector, l-infinity or l2.
        reticent.mechanisms.GaussianMechanism: independent noise, l2, with a delta.
        reticent.noise.Grid: the public grid.
    """

    sensitivity: float
    epsilon: float
    dimension: int
    adjacency: Adjacency
    evaluation_error: float = 0.0

    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", positive(self.sensitivity, name="sensitivity"))
        object.__setattr__(self, "epsilon", positive(self.epsilon, name="epsilon"))
        object.__setattr__(self, "dimension", count(self.dimension, name="dimension"))
        error = self.evaluation_error
        if not (np.isfinite(error) and error >= 0):
            raise InvalidParameter(
                f"evaluation_error={error!r}: expected a finite number of at least 0"
            )

    @property
    @abstractmethod
    def norm(self) -> Norm:
        """The output norm that ``sensitivity`` is measured in."""

    @property
    @abstractmethod
    def steps_scale(self) -> float:
        """Scale (Gaussian: sigma) of the integer noise, in grid steps."""

    @abstractmethod
    def draw(self, rows: int, *, sampler: Sampler) -> Integers:
        """Return noise alone, in grid steps: shape (rows, dimension), int64."""

    @abstractmethod
    def _log_weight(self, noise: Integers) -> Array:
        """Return the log probability of each row of ``noise``, up to one number for all."""

    @property
    def scale(self) -> float:
        """Scale of the noise in output units: the b of exp(-||u||/b), or sigma for the Gaussian."""
        return self.steps_scale * self.grid.step

    @cached_property
    def grid(self) -> Grid:
        """The public grid: 2**20 to 2**21 steps in the smaller of sensitivity and sensitivity /
        epsilon.
        """
        return Grid.finer_than(self.sensitivity / max(1.0, self.epsilon))

    @cached_property
    def steps_sensitivity(self) -> float:
        """Bound on the distance of two neighbours' rounded values in ``norm``, in grid steps,
        rounded up.
        """
        return self._distance_in_steps()

    def _distance_in_steps(self) -> float:
        """The same, not cached: a subclass that sharpens the cached value must not share its
        slot with this one.
        """
        ones = self.norm.of_ones(self.dimension)
        distance = self.sensitivity + 2.0 * self.evaluation_error * ones
        return (distance / self.grid.step + ones) * _ROUND_UP

    def release(self, values: npt.ArrayLike, *, sampler: Sampler) -> Array:
        """Return ``values`` plus fresh noise, each row a separate release.

        Args:
            values: shape (n, m), finite. Coordinates beyond ``grid.limit`` (about 10**12 times the
                noise scale) are moved to it first. That is 1-Lipschitz, so the guarantee stands.
            sampler: source of randomness. Only an unseeded one protects anybody.

        Returns:
            Shape (n, m), float64, multiples of ``grid.step``.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        array = finite_array(
            values, name="values", ndim=2, columns=self.dimension, allow_empty=True
        )
        noise = self.draw(len(array), sampler=sampler)
        return self.grid.values(self.grid.sum(self.grid.round(array), noise))

    def log_likelihood(self, released: npt.ArrayLike, values: npt.ArrayLike) -> Array:
        """Return the log probability of each released row, had each value been released, up to
        one number that all of them share. Differences of two are the log-likelihood ratio that an
        attacker weighs two values by: exact, but for rounding in doubles.

        Args:
            released: shape (n, m), results of ``release``.
            values: shape (k, m), finite. What is shown about them is private if they are.

        Returns:
            Shape (n, k).

        Raises:
            InvalidInput: wrong shape, NaN or infinity.
        """
        seen, points = (
            self.grid.round(
                finite_array(array, name=name, ndim=2, columns=self.dimension, allow_empty=True)
            )
            for array, name in ((released, "released"), (values, "values"))
        )
        weights = np.empty((len(seen), len(points)))
        for index, point in enumerate(points):  # a row at a time: n k m numbers may be too many
            weights[:, index] = self._log_weight(seen - point)
        return weights
