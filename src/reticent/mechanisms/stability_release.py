"""A label released by the margin of its logits, which counts the neighbourhoods up to the nearest
other label.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Integers
from reticent.mechanisms.label_mechanism import LabelMechanism
from reticent.mechanisms.stability_response import StabilityResponse
from reticent.noise import Sampler


@dataclass(frozen=True, kw_only=True)
class StabilityRelease(LabelMechanism):
    """The top label with a probability that grows with its margin, measured in sensitivities.

    **Guarantee.** If between any two neighbours every *difference of two logits* changes by at most
    ``sensitivity``, and each logit is computed to within ``evaluation_error``, one label is
    (epsilon, 0)-private under ``adjacency``.

    *Why.* The level of a point with margin g = F_top - F_second is max(0, ceil(g / D) - 1), where D
    is the sensitivity in grid steps. (1) With equal top labels the margin is the least of
    F_top - F_j over the other j. With different ones (2) covers both margins. So the margin changes
    by at most D and the level by at most 1. (2) If the top labels i and j differ, F_i - F_j >= g at
    one neighbour and F_j - F_i >= g' at the other. So g + g' <= D, both margins are at most D, and
    both levels are 0. These are the two properties that ``StabilityResponse`` needs. Ties go to the
    first label and have margin 0.

    *Floating point.* Gaps to the top logit are rounded to a public grid, and the sensitivity is
    enlarged by that. Margins and levels are exact integers from there.

    Attributes: those of ``LabelMechanism``.

    Example:
        >>> from reticent.core import Neighborhood, Norm
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> mechanism = StabilityRelease(classes=3, sensitivity=1.0, epsilon=2.0, adjacency=near)
        >>> mechanism.levels([[0.5, 0.0, 0.0], [1.5, 0.0, 0.0], [0.0, 9.5, 0.0]]).tolist()
        [0, 1, 9]

    Utility:
        With two classes and a margin of g sensitivities the wrong label comes out with probability
        exp(-epsilon l) / (1 + exp(epsilon)), l = ceil(g) - 1, the least possible. For epsilon = 1
        that is 0.27, 0.10, 0.01 and 0.002 at g = 0, 1.5, 3.5 and 5.5. With ten classes it is 0.77,
        0.37, 0.05 and 0.007, wherever the other nine stand.

    Runtime:
        O(classes) a label, 0.3 microseconds for 10 classes on one core (benchmarks/runtimes.py).

    References:
        - Thakurta and Smith (2013), "Differentially private feature selection via stability
          arguments, and the robustness of the lasso", Conference on Learning Theory (COLT), PMLR
          30:819-850 (answers by their distance to instability).
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338 (randomised response as the optimum at level 0).
        - The response and its optimality: docs/mechanisms.md.

    See Also:
        reticent.mechanisms.StabilityResponse: the response once the level is known.
        reticent.mechanisms.NoisyMaxRelease: a label that spends nothing on labels far behind.
    """

    name: ClassVar[str] = "stability release"
    least_epsilon: ClassVar[float] = 1e-6

    @cached_property
    def response(self) -> StabilityResponse:
        """Response that answers once labels and levels are known."""
        return StabilityResponse(
            classes=self.classes, epsilon=self.epsilon, adjacency=self.adjacency
        )

    def levels(self, logits: npt.ArrayLike) -> Integers:
        """Return the level of each row's top label, shape (n,), int64, at least 0. Private.

        Args:
            logits: shape (n, classes), finite.
        """
        return self._top(logits)[1]

    @override
    def probabilities(self, logits: npt.ArrayLike) -> npt.NDArray[np.float64]:
        labels, levels = self._top(logits)
        level = np.minimum(levels, self.response.max_level)
        chances = np.repeat(self.response.wrong_probabilities[level][:, None], self.classes, axis=1)
        chances[np.arange(len(labels)), labels] = self.response.right_probabilities[level]
        return chances

    @override
    def release(self, logits: npt.ArrayLike, *, sampler: Sampler) -> Integers:
        labels, levels = self._top(logits)
        return self.response.release(labels, levels, sampler=sampler)

    def _top(self, logits: npt.ArrayLike) -> tuple[Integers, Integers]:
        gaps = self.gaps(logits)
        margin = np.partition(gaps, 1, axis=1)[:, 1]
        # ceil(margin / D) - 1 in integers, where -1 for margin 0 becomes level 0.
        return gaps.argmin(axis=1), np.maximum((margin - 1) // self.whole_sensitivity, 0)
