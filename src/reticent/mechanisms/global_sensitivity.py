"""The baseline without certificates: a label is a query of sensitivity 1, answered with Laplace
noise and a threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.mechanisms.level_response import BinaryResponse

_ARITHMETIC = 2.0**-40


@dataclass(frozen=True, kw_only=True)
class GlobalSensitivityResponse(BinaryResponse):
    """1 if f + Laplace(1 / epsilon) exceeds 1/2, f the label 0 or 1.

    **Guarantee.** One answer is (epsilon, 0)-private under ``adjacency``, for any label: the
    Laplace mechanism at sensitivity 1, post-processed. It is drawn by its own probability, P(wrong)
    = exp(-epsilon / 2) / 2, with an exact coin.

    *Against randomised response.* exp(epsilon / 2) is far from the ratio that epsilon allows:
    ``StabilityResponse`` at level 0 is wrong with probability 1 / (1 + exp(epsilon)), the least
    possible without looking at the data.

    Levels are accepted and ignored, so that it can stand in for the certified responses.

    Example:
        >>> from reticent.core import AddRemove
        >>> GlobalSensitivityResponse(epsilon=2.0, adjacency=AddRemove(1)).flip_probabilities(
        ...     [0, 9]
        ... ).round(4).tolist()
        [0.1839, 0.1839]

    Utility:
        Wrong with probability exp(-epsilon / 2) / 2 for every query: 0.30 at epsilon = 1, 0.18 at
        2, 0.04 at 5; randomised response, without any certificate, 0.27, 0.12 and 0.007.

    Runtime:
        O(1) an answer; 0.03 microseconds on one core (benchmarks/runtimes.py).

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, proposition 1.
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, the baseline of its experiments.

    See Also:
        reticent.mechanisms.StabilityResponse: uses stable distances; at level 0 randomised
            response.
        reticent.mechanisms.SmoothCauchy: the published response that uses them.
    """

    name: ClassVar[str] = "global sensitivity response"

    @override
    def flip_probabilities(self, levels: npt.ArrayLike) -> Array:
        return np.full(len(np.asarray(levels)), 0.5 * math.exp(-0.5 * (self.epsilon - _ARITHMETIC)))
