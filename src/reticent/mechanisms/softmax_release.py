"""A label drawn from the softmax of a classifier's logits, at pure epsilon without the loss of a
factor 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.mechanisms.label_mechanism import LabelMechanism
from reticent.noise import Grid, Sampler

Labels = npt.NDArray[np.int64]

LARGEST_GAP = 64.0
"""Exponents below -64 are raised to it. Such a label has probability below 1e-27 either way."""

_ARITHMETIC = 2.0**-40
"""Charge to epsilon: four times the relative error of a weight (2^-43), and 2^-49 per class for
their sums.
"""


@dataclass(frozen=True, kw_only=True)
class SoftmaxRelease(LabelMechanism):
    """One label, which is i with probability proportional to exp(epsilon F_i / sensitivity).

    **Guarantee.** If between any two neighbours every *difference of two logits* changes by at most
    ``sensitivity``, and each logit is computed to within ``evaluation_error``, one label is
    (epsilon, 0)-private under ``adjacency``.

    *Why.* The log-probability of label i is -log sum_j exp(epsilon (F_j - F_i) / sensitivity). Each
    exponent changes by at most epsilon, so the sum changes by at most a factor e^epsilon. (The
    exponential mechanism pays twice that, because it bounds single scores instead of their
    differences.) Raising each F_i to at least max F - 64 temperatures keeps the bound
    (``gaps_to_top``).

    *Floating point.* Gaps to the top logit are rounded to a public grid, and the sensitivity is
    enlarged by that. From there they are exact integers. Weights and shares are right to a relative
    2^-43, charged inside epsilon.

    Attributes: those of ``LabelMechanism``.

    Example:
        >>> from reticent.core import Neighborhood, Norm
        >>> from reticent.noise import SecureSampler
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> mechanism = SoftmaxRelease(classes=3, sensitivity=1.0, epsilon=2.0, adjacency=near)
        >>> mechanism.probabilities([[1.0, 0.0, 0.0]]).round(3).tolist()
        [[0.787, 0.107, 0.107]]

    Utility:
        With margins of g sensitivities to each of c - 1 rivals the top label wins with probability
        1 / (1 + (c - 1) exp(-epsilon g)). At epsilon = 1 and g = 0, 1.5, 3.5 and 5.5 that is 0.50,
        0.82, 0.97 and 0.996 with one rival, and 0.10, 0.33, 0.79 and 0.97 with nine.

    Runtime:
        O(classes) a label, 0.4 microseconds for 10 classes on one core (benchmarks/runtimes.py).

    References:
        - McSherry and Talwar (2007), "Mechanism design via differential privacy",
          doi:10.1109/FOCS.2007.66.
        - Durfee and Rogers (2019), "Practical differentially private top-k selection with
          pay-what-you-get composition", arXiv:1905.04273 (the exponential mechanism under a bounded
          range of scores).
        - Dong, Durfee and Rogers (2020), "Optimal differential privacy composition for exponential
          mechanisms", arXiv:1909.13830.

    See Also:
        reticent.mechanisms.NoisyMaxRelease: a label whose larger gaps win more often, at the same
            cost.
        reticent.mechanisms.StabilityRelease: a label by the margin alone.
    """

    name: ClassVar[str] = "softmax release"
    least_epsilon: ClassVar[float] = 1e-9

    @cached_property
    @override
    def grid(self) -> Grid:
        """Public grid of the logits."""
        return Grid.finer_than(self.sensitivity / max(1.0, self.epsilon))

    @cached_property
    def _steps_temperature(self) -> float:
        return self.steps_sensitivity / (self.epsilon - _ARITHMETIC)

    @override
    def probabilities(self, logits: npt.ArrayLike) -> Array:
        weights = self._weights(logits)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    @override
    def release(self, logits: npt.ArrayLike, *, sampler: Sampler) -> Labels:
        return sampler.categorical(self._weights(logits))

    def _weights(self, logits: npt.ArrayLike) -> Array:
        gaps = self._gaps(logits)
        return np.asarray(np.exp(-np.minimum(gaps / self._steps_temperature, LARGEST_GAP)))
