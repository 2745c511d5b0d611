"""A label drawn from the softmax of a classifier's logits: pure epsilon, with no factor 2 lost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count, positive
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Adjacency, Guarantee
from reticent.mechanisms.costs import event_of
from reticent.mechanisms.logits import ROUNDING_STEPS, gaps_to_top
from reticent.noise import Grid, Sampler

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

LARGEST_GAP = 64.0
"""Exponents below -64 are raised to it; such a label has probability below 1e-27 either way."""

_ARITHMETIC = 2.0**-40
"""Charged to epsilon: four times the relative error of a weight (2^-43), and 2^-49 per class for their sums."""


@dataclass(frozen=True, kw_only=True)
class SoftmaxRelease:
    """One label, i with probability proportional to exp(epsilon F_i / sensitivity).

    **Guarantee.** If between any two neighbours every *difference of two logits* changes by at most ``sensitivity``, and
    each logit is computed to within ``evaluation_error``, one label is (epsilon, 0)-private under ``adjacency``.

    *Why.* The log-probability of label i is -log sum_j exp(epsilon (F_j - F_i) / sensitivity). Each exponent changes by at
    most epsilon, so the sum changes by at most a factor e^epsilon. (The exponential mechanism pays twice that, because it
    bounds single scores instead of their differences.) Raising each F_i to at least max F - 64 temperatures keeps the
    bound, see ``gaps_to_top``.

    *Floating point.* Gaps to the top logit are rounded to a public grid, and the sensitivity enlarged by that; from there
    they are exact integers. Weights and shares are right to a relative 2^-43, charged inside epsilon.

    Attributes:
        classes: number of labels, 2 to 1000.
        sensitivity: bound on the change of any difference of two logits between neighbours ("spread"), above 0.
        epsilon: at least 1e-9.
        adjacency: what neighbours are.
        evaluation_error: bound on |computed - true| of each logit.

    Example:
        >>> from reticent.core import Neighborhood, Norm
        >>> from reticent.noise import SecureSampler
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> mechanism = SoftmaxRelease(classes=3, sensitivity=1.0, epsilon=2.0, adjacency=near)
        >>> mechanism.probabilities([[1.0, 0.0, 0.0]]).round(3).tolist()
        [[0.787, 0.107, 0.107]]

    Reference: McSherry and Talwar (2007); with a bounded range of scores, Durfee and Rogers (2019) and Dong, Durfee and
    Rogers (2020).
    """

    classes: int
    sensitivity: float
    epsilon: float
    adjacency: Adjacency
    evaluation_error: float = 0.0

    name: ClassVar[str] = "softmax release"

    def __post_init__(self) -> None:
        if not 2 <= count(self.classes, name="classes") <= 1000:
            raise InvalidParameter(f"classes={self.classes!r}: expected 2 to 1000")
        object.__setattr__(self, "sensitivity", positive(self.sensitivity, name="sensitivity"))
        if positive(self.epsilon, name="epsilon") < 1e-9:
            raise InvalidParameter(f"epsilon={self.epsilon!r}: expected at least 1e-9")
        error = self.evaluation_error
        if not (np.isfinite(error) and error >= 0):
            raise InvalidParameter(f"evaluation_error={error!r}: expected a finite number of at least 0")

    @property
    def guarantee(self) -> Guarantee:
        """Cost of one label."""
        return Guarantee(self.epsilon, 0.0, self.adjacency)

    @property
    def event(self) -> PrivacyEvent:
        """Cost of one label, for accounting."""
        return event_of(self.name, self.guarantee)

    @property
    def temperature(self) -> float:
        """Logits are divided by this before the softmax: sensitivity over epsilon, in logit units."""
        return self._steps_temperature * self.grid.step

    @cached_property
    def grid(self) -> Grid:
        """The public grid of the logits."""
        return Grid.finer_than(self.sensitivity / max(1.0, self.epsilon))

    @cached_property
    def _steps_temperature(self) -> float:
        # A difference of two logits has two evaluation errors at either neighbour.
        steps = (self.sensitivity + 4.0 * self.evaluation_error) / self.grid.step + ROUNDING_STEPS
        return steps * (1.0 + 2.0**-48) / (self.epsilon - _ARITHMETIC)

    def probabilities(self, logits: npt.ArrayLike) -> Array:
        """The law of the released label; private, for training and for expected accuracies on public data.

        Args:
            logits: shape (n, classes), finite.

        Returns:
            Shape (n, classes), rows summing to 1.
        """
        weights = self._weights(logits)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def release(self, logits: npt.ArrayLike, *, sampler: Sampler) -> Labels:
        """One label per row, each a separate release.

        Args:
            logits: shape (n, classes), finite.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. classes - 1.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        return sampler.categorical(self._weights(logits))

    def _weights(self, logits: npt.ArrayLike) -> Array:
        gaps = gaps_to_top(logits, classes=self.classes, grid=self.grid)
        return np.asarray(np.exp(-np.minimum(gaps / self._steps_temperature, LARGEST_GAP)))
