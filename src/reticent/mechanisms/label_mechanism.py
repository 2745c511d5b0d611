"""What the label mechanisms share: gaps of logits on a public grid, and the sensitivity measured
in its steps.
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
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Grid, Sampler

ROUNDING_STEPS = 3.0
"""Rounding moves a gap by at most 5/8 of a step, so a difference of two gaps, compared between
two neighbours, by 2.5.
"""

_FURTHEST = 2.0**50


@dataclass(frozen=True, kw_only=True)
class LabelMechanism(Mechanism, ABC):
    """One label per row of logits, (epsilon, 0)-private if differences of logits have a bounded
    sensitivity.

    Attributes:
        classes: number of labels, 2 to 1000.
        sensitivity: bound on the change of any difference of two logits between neighbours
            ("spread"), above 0.
        epsilon: at least ``least_epsilon``.
        adjacency: definition of neighbours.
        evaluation_error: bound on |computed - true| of each logit.

    Utility:
        Each subclass says how often the top label comes out at a given margin.

    Runtime:
        O(classes) a row. Below a microsecond for 10 classes on one core (benchmarks/runtimes.py).

    References:
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, section 3.3 (report noisy max), the setting that subclasses share.

    See Also:
        reticent.mechanisms.StabilityRelease: best for two classes, and for labels far ahead.
        reticent.mechanisms.NoisyMaxRelease: best where several labels are close and others far
            behind.
    """

    classes: int
    sensitivity: float
    epsilon: float
    adjacency: Adjacency
    evaluation_error: float = 0.0

    name: ClassVar[str]
    least_epsilon: ClassVar[float]

    def __post_init__(self) -> None:
        if not 2 <= count(self.classes, name="classes") <= 1000:
            raise InvalidParameter(f"classes={self.classes!r}: expected 2 to 1000")
        object.__setattr__(self, "sensitivity", positive(self.sensitivity, name="sensitivity"))
        if positive(self.epsilon, name="epsilon") < self.least_epsilon:
            raise InvalidParameter(
                f"epsilon={self.epsilon!r}: expected at least {self.least_epsilon:g}"
            )
        error = self.evaluation_error
        if not (np.isfinite(error) and error >= 0):
            raise InvalidParameter(
                f"evaluation_error={error!r}: expected a finite number of at least 0"
            )
        if not self._steps_sensitivity < 2.0**62:
            raise InvalidParameter(
                f"evaluation_error={error!r}: expected less, for sensitivity={self.sensitivity!r}"
            )

    @cached_property
    def grid(self) -> Grid:
        """The public grid of the logits: 2**20 to 2**21 steps in ``sensitivity``."""
        return Grid.finer_than(self.sensitivity)

    @property
    def _steps_sensitivity(self) -> float:
        # A difference of two logits has two evaluation errors at either neighbour.
        exact = (self.sensitivity + 4.0 * self.evaluation_error) / self.grid.step + ROUNDING_STEPS
        return exact * (1.0 + 2.0**-48)

    @cached_property
    def whole_sensitivity(self) -> int:
        """Bound on the change of a difference of two gaps between neighbours, in whole grid
        steps.
        """
        return int(np.ceil(self._steps_sensitivity))

    @abstractmethod
    def probabilities(self, logits: npt.ArrayLike) -> Array:
        """Return the distribution of the released label.

        It is private, for training and for expected accuracies on public data.

        Args:
            logits: shape (n, classes), finite.

        Returns:
            Shape (n, classes), rows summing to 1.
        """

    @abstractmethod
    def release(self, logits: npt.ArrayLike, *, sampler: Sampler) -> Integers:
        """Return one label per row, each a separate release.

        Args:
            logits: shape (n, classes), finite.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. classes - 1.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """

    def gaps(self, logits: npt.ArrayLike) -> Integers:
        """Return whole steps from each row's largest logit down to each of its logits, at most
        2**50. Private.

        Only differences of logits are bounded between neighbours. All logits together may move by
        any amount. So they are subtracted *before* rounding: a clip of single logits to the grid's
        ends would not keep their differences. The cap on gaps does: raising every logit to at least
        top - C is monotone and commutes with moving all logits together, so it never widens the
        range of a change. Below the cap the rounding of the subtraction is under 1/8 of a step.

        Args:
            logits: shape (n, classes), finite.

        Returns:
            Shape (n, classes), int64, 0 at the top.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        array = finite_array(logits, name="logits", ndim=2, columns=self.classes, allow_empty=True)
        with np.errstate(over="ignore"):  # an overflow is a gap far beyond the cap
            away = array.max(axis=1, keepdims=True, initial=-np.inf) - array
            steps = np.rint(np.ldexp(away, -self.grid.exponent))
        return np.asarray(np.minimum(steps, _FURTHEST).astype(np.int64))
