"""Certified prediction as printed: Cauchy noise at the smooth sensitivity, then a threshold. Beside
it stand its baseline without certificates, and its stable distance of a vote.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import as_array, counts, one_of
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Guarantee, GuaranteeKind
from reticent.mechanisms.level_response import BinaryResponse
from reticent.published.printed import AsPrinted

_ARITHMETIC = 2.0**-40
"""Taken off epsilon: more than the relative error of arctan and exp in either probability,
twice.
"""


@dataclass(frozen=True, kw_only=True)
class SmoothCauchy(AsPrinted, BinaryResponse):
    """A response that is 1 if f + z exceeds 1/2, with z Cauchy of scale 6 exp(-epsilon k / 6) /
    epsilon and f the label 0 or 1.

    **Guarantee.** With every distance certified (``certified_at=()``), or with ``credit="index"``,
    one answer is (epsilon, 0)-private under ``adjacency``, if the label and its stable distance
    have the two properties that ``StabilityResponse`` needs. With a sparse set of distances and
    ``credit="distance"``, as published, there is *no guarantee*. The kind says so and a ledger
    refuses it.

    *Why.* exp(-epsilon k / 6) bounds the smooth sensitivity and changes by at most a factor
    exp(epsilon / 6) between neighbours (Nissim, Raskhodnikova and Smith 2007, Lemma 2.7 with gamma
    = 2). The threshold is post-processing, so the answer is drawn by its own probability, P(wrong)
    = 1/2 - arctan(epsilon exp(epsilon k / 6) / 12) / pi, with an exact coin.

    *Differs from the paper.* The paper certifies a sparse set of distances and takes the largest
    that holds. That is an upper bound on the smooth sensitivity, but not a smooth one: a stable
    distance of 20 can stand next to one of 5. The *index* in the set changes by at most 1 between
    neighbours, and repairs it.

    *Against the default.* The chance of a wrong label falls as exp(-epsilon k / 6), for
    ``StabilityResponse`` as exp(-epsilon k).

    Attributes:
        certified_at: increasing distances at which stability is looked at, each at least 1. () for
            every one.
        credit: "distance" to count the largest of them that holds by its value, as published, or
            "index" to count it by its place.

    Example:
        >>> from reticent.core import AddRemove
        >>> SmoothCauchy(epsilon=1.0, adjacency=AddRemove(1)).flip_probabilities([0, 20, 40]).round(
        ...     4
        ... ).tolist()
        [0.4735, 0.1288, 0.0049]

    Utility:
        At epsilon = 1 a label is wrong with probability 0.47, 0.37, 0.13 and 0.005 at stable
        distance 0, 10, 20 and 40. For ``StabilityResponse`` it is 0.27, 1e-5, and less from there.
        Where the scale is small the chance is about 2 / pi times it.

    Runtime:
        O(1) an answer: 0.04 microseconds on one core (benchmarks/runtimes.py).

    References:
        - Nissim, Raskhodnikova and Smith (2007), "Smooth sensitivity and sampling in private data
          analysis", doi:10.1145/1250790.1250803, lemma 2.7, with gamma = 2.
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, the response that it publishes.

    See Also:
        reticent.mechanisms.StabilityResponse: the default, with the same premises at a sixth of the
            budget.
        reticent.published.GlobalSensitivityResponse: without certificates.
    """

    certified_at: tuple[int, ...] = ()
    credit: Literal["distance", "index"] = "distance"

    name: ClassVar[str] = "smooth Cauchy response"

    def __post_init__(self) -> None:
        super().__post_init__()
        distances = counts(self.certified_at, name="certified_at")
        if list(distances) != sorted(set(distances)):
            raise InvalidParameter(
                f"certified_at={self.certified_at!r}: expected increasing integers of at least 1"
            )
        one_of(self.credit, ("distance", "index"), name="credit")
        object.__setattr__(self, "certified_at", distances)

    @property
    def smooth(self) -> bool:
        """True if the credited distance changes by at most 1 between neighbours."""
        return self.credit == "index" or self.certified_at == tuple(
            range(1, len(self.certified_at) + 1)
        )

    @property
    @override
    def guarantee(self) -> Guarantee:
        """The cost of one answer, of kind "no differential privacy" for a sparse set credited by
        distance.
        """
        kind = GuaranteeKind.DIFFERENTIAL_PRIVACY if self.smooth else GuaranteeKind.NO_PRIVACY
        return Guarantee(self.epsilon, 0.0, self.adjacency, kind)

    def credited(self, levels: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the distances that stable distances count as, given where stability is looked at.
        Private.
        """
        level = as_array(levels, name="levels").astype(np.int64)
        if not self.certified_at:
            return level
        place = np.searchsorted(self.certified_at, level, side="right")
        return np.asarray(
            place if self.credit == "index" else np.array([0, *self.certified_at])[place],
            dtype=np.int64,
        )

    @override
    def flip_probabilities(self, levels: npt.ArrayLike) -> Array:
        epsilon = self.epsilon - _ARITHMETIC
        reach = np.exp(np.minimum(epsilon * self.credited(levels) / 6.0, 80.0)) * epsilon / 12.0
        # arctan(1/t) in place of pi/2 - arctan(t), so that a small probability keeps its digits.
        return np.asarray(np.arctan2(1.0, reach) / np.pi)


@dataclass(frozen=True, kw_only=True)
class GlobalSensitivityResponse(BinaryResponse):
    """A response that is 1 if f + Laplace(1 / epsilon) exceeds 1/2, with f the label 0 or 1.

    **Guarantee.** One answer is (epsilon, 0)-private under ``adjacency``, for any label, because it
    is the Laplace mechanism at sensitivity 1, post-processed. It is drawn by its own probability,
    P(wrong) = exp(-epsilon / 2) / 2, with an exact coin.

    *Against randomised response.* exp(epsilon / 2) is far from the ratio that epsilon allows.
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
        2, 0.04 at 5. For randomised response, without any certificate, it is 0.27, 0.12 and 0.007.

    Runtime:
        O(1) an answer: 0.03 microseconds on one core (benchmarks/runtimes.py).

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, proposition 1.
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, the baseline of its experiments.

    See Also:
        reticent.mechanisms.StabilityResponse: the response that uses stable distances, at level 0
            randomised response.
        reticent.published.SmoothCauchy: the published response that uses them.
    """

    name: ClassVar[str] = "global sensitivity response"

    @override
    def flip_probabilities(self, levels: npt.ArrayLike) -> Array:
        return np.full(len(np.asarray(levels)), 0.5 * math.exp(-0.5 * (self.epsilon - _ARITHMETIC)))


def published_vote_distances(labels: npt.ArrayLike, distances: npt.ArrayLike) -> Integers:
    """Return the sum of Theorem 5.3 of the paper as printed: ceil(gap / 2) smallest distances of
    *all* members, plus their number, minus 1.

    **Guarantee.** None. The number is a valid stable distance, but neighbours' numbers differ by
    any amount. It serves research and the audit.

    Args:
        labels: shape (members, n), 0 or 1.
        distances: the same shape, at least 0.

    Returns:
        Shape (n,), int64.

    Example:
        >>> distances = [[100]] * 8 + [[0]]
        >>> (
        ...     published_vote_distances([[1]] * 8 + [[0]], distances),
        ...     published_vote_distances([[1]] * 9, distances),
        ... )
        (array([303]), array([404]))

    Utility:
        A valid stable distance for a report. It is useless for privacy, because that of a
        neighbouring data set may be anything.

    Runtime:
        O(m log m) a query: 0.4 microseconds for 50 members on one core (benchmarks/runtimes.py).

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, theorem 5.3.

    See Also:
        reticent.retraining.vote_distances: a stable distance that moves by at most 1.
    """
    votes, costs = np.asarray(labels), np.asarray(distances)
    flipped = np.ceil(np.abs(2 * votes.sum(axis=0) - len(votes)) / 2).astype(np.int64)
    sums = np.concatenate(
        [np.zeros((1, votes.shape[1]), np.int64), np.cumsum(np.sort(costs, axis=0), axis=0)]
    )
    return np.asarray(np.maximum(sums[flipped, np.arange(votes.shape[1])] + flipped - 1, 0))
