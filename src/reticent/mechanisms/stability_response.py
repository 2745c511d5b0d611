"""Randomised response that trusts a label the more, the farther it is from changing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Booleans, Integers
from reticent.core.checks import as_array, count, positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Adjacency
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler

_ARITHMETIC = 2.0**-38
"""Margin taken off epsilon in the recursion, more than the relative errors of p, q (2^-42 for 1000
classes) and of the coin.
"""

_SMALLEST_SHARE = 2.0**-80
"""The recursion stops here, since a label that is wrong less often than once in 10^24 answers is
certain enough.
"""

_MOST_LEVELS = 2**20
"""The recursion ends after this many levels, about half a second. Below epsilon 5e-5, distances of
a million records and more count as that many, which changes by at most 1 between neighbours as
well.
"""


@dataclass(frozen=True, kw_only=True)
class StabilityResponse(Mechanism):
    """The given label with probability p(level), each other label with probability q(level).

    **Guarantee.** One answer is (epsilon, 0)-private under ``adjacency`` if the label and its level
    have these two properties: neighbours' levels differ by at most 1, and neighbours with different
    labels both have level 0.

    *Why.* With c classes, q(0) = 1/(e^epsilon + c - 1) and p(0) = e^epsilon q(0) are plain
    randomised response, which settles neighbours with different labels (and p(0)/q(0) is the
    largest ratio there is). With equal labels the four ratios p(k+1)/p(k) <= e^epsilon, q(k)/q(k+1)
    <= e^epsilon and their opposites must hold. As 1 - p = (c - 1) q, they say

        q(k+1) >= e^-epsilon q(k)     and     q(k+1) >= (1 - e^epsilon p(k)) / (c - 1),

    and the recursion takes the larger of the two. Since smaller q(k) allows smaller q(k+1), no
    response that depends on the label and its level alone is right more often at any level. For two
    classes the second bound never binds and q(k) = e^-(epsilon k) / (e^epsilon + 1).

    *Floating point.* The answer is drawn by an exact coin. p and q are right to a relative 2^-42
    each, charged inside epsilon. Levels stop counting once q has fallen to 2^-80.

    *Differs from the paper* of Wicker et al. (2025), which adds Cauchy noise at the smooth
    sensitivity. Its error falls as exp(-epsilon k / 6) with heavy tails, here as exp(-epsilon k).

    Attributes:
        classes: number of labels c, 2 to 1000.
        epsilon: at least 1e-6.
        adjacency: the relation of neighbours.

    Example:
        >>> from reticent.core import AddRemove
        >>> from reticent.noise import SecureSampler
        >>> response = StabilityResponse(classes=2, epsilon=1.0, adjacency=AddRemove(1))
        >>> response.right_probabilities[:3].round(4).tolist()
        [0.7311, 0.9011, 0.9636]
        >>> response.release([1, 0], [90, 90], sampler=SecureSampler()).tolist()
        [1, 0]

    Utility:
        At epsilon = 1 two labels are right with probability 0.73, 0.90, 0.96 and 0.99 at levels 0
        to 3, ten labels with 0.23, 0.63, 0.86 and 0.95. 99 % is reached at level 4 and 5. At
        epsilon = 0.1 it is reached at 39 and 55, at epsilon = 2 at 2 and 3. Far out the chance of a
        wrong label falls as exp(-epsilon k).

    Runtime:
        O(1) an answer, 0.1 microseconds on one core (benchmarks/runtimes.py). The table of O(55 /
        epsilon) levels is made once.

    References:
        - Warner (1965), "Randomized response: a survey technique for eliminating evasive answer
          bias", doi:10.1080/01621459.1965.10480775 (randomised response, which is level 0 here).
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338 (its optimality for several labels).
        - Nissim, Raskhodnikova and Smith (2007), "Smooth sensitivity and sampling in private data
          analysis", doi:10.1145/1250790.1250803 (smooth sensitivity, which this replaces).
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433 (stable distances of a trained model).

    See Also:
        reticent.mechanisms.StabilityRelease: levels from the margins of logits.
        reticent.published.SmoothCauchy: the published response.
        reticent.retraining.stable_distances: levels from training records.
    """

    classes: int
    epsilon: float
    adjacency: Adjacency

    name: ClassVar[str] = "stability response"

    def __post_init__(self) -> None:
        if not 2 <= count(self.classes, name="classes") <= 1000:
            raise InvalidParameter(f"classes={self.classes!r}: expected 2 to 1000")
        if positive(self.epsilon, name="epsilon") < 1e-6:
            raise InvalidParameter(f"epsilon={self.epsilon!r}: expected at least 1e-6")

    @cached_property
    def right_probabilities(self) -> Array:
        """Probabilities p(0) .. p(max_level) that the given label is the answer."""
        return _probabilities(self.classes, self.epsilon)[0]

    @cached_property
    def wrong_probabilities(self) -> Array:
        """Probabilities q(0) .. q(max_level) of each other label."""
        return _probabilities(self.classes, self.epsilon)[1]

    @property
    def max_level(self) -> int:
        """Largest level. Higher ones count as this one."""
        return len(self.right_probabilities) - 1

    def release(
        self, labels: npt.ArrayLike, levels: npt.ArrayLike, *, sampler: Sampler
    ) -> Integers:
        """Return one label per row, each a separate answer.

        Args:
            labels: shape (n,), integers in 0 .. classes - 1, never released as they are.
            levels: shape (n,), integers of at least 0.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. classes - 1.

        Raises:
            InvalidInput: wrong shapes or types, a label or level out of its range. Values are
                never shown.
        """
        given, level = checked_labels(labels, levels, classes=self.classes)
        level = np.minimum(level, self.max_level)
        rarer, right_is_rarer = _coins(self.classes, self.epsilon)
        lie = sampler.bernoulli(rarer[level]) ^ right_is_rarer[level]
        if self.classes == 2:
            return np.asarray(given ^ lie)
        shift = 1 + sampler.uniform_integers(np.full(len(given), self.classes - 1))
        return np.asarray(np.where(lie, (given + shift) % self.classes, given))


@lru_cache(maxsize=64)  # a fitted system makes its mechanism anew for every call
def _probabilities(classes: int, epsilon: float) -> tuple[Array, Array]:
    """Return p(k) and q(k) of every level, read-only."""
    epsilon, others = min(epsilon - _ARITHMETIC, 700.0), classes - 1
    decay = math.exp(-epsilon)
    # 1 - e^epsilon p(k) = e^epsilon ((c - 1) q(k) - (1 - e^-epsilon)), whose right side has no p
    # close to 1.
    growth, slack = math.exp(epsilon), -math.expm1(-epsilon)
    wrong = [decay / (1.0 + others * decay)]
    while wrong[-1] > _SMALLEST_SHARE and len(wrong) < _MOST_LEVELS:
        wrong.append(max(decay * wrong[-1], growth * (others * wrong[-1] - slack) / others))
    q = np.array(wrong)
    p = 1.0 - others * q
    p.flags.writeable = q.flags.writeable = False
    return p, q


@lru_cache(maxsize=64)
def _coins(classes: int, epsilon: float) -> tuple[Array, Booleans]:
    """Return the chance of the rarer of right and wrong at every level, and whether that is right.

    The rarer one is drawn, as in ``Sampler.categorical``, because a double near 0 has more digits
    than one near 1.
    """
    p, q = _probabilities(classes, epsilon)
    wrong = (classes - 1) * q
    right, wrong = p / (wrong + p), wrong / (wrong + p)
    return np.minimum(right, wrong), right <= wrong


def checked_labels(
    labels: npt.ArrayLike, levels: npt.ArrayLike, *, classes: int
) -> tuple[Integers, Integers]:
    """Return labels in 0 .. ``classes`` - 1 and as many levels of at least 0, as int64.

    Raises:
        InvalidInput: wrong shapes or types, or out of range. Values are never shown.
    """
    given, level = as_array(labels, name="labels"), as_array(levels, name="levels")
    if given.ndim != 1 or given.shape != level.shape:
        raise InvalidInput(
            f"labels and levels: expected two lists of one length, got {given.shape} and "
            f"{level.shape}"
        )
    if given.size and (given.dtype.kind not in "iu" or level.dtype.kind not in "iu"):
        raise InvalidInput(
            f"labels and levels: expected integers, got {given.dtype} and {level.dtype}"
        )
    if given.size and (given.min() < 0 or given.max() >= classes or level.min() < 0):
        raise InvalidInput(
            f"labels and levels: expected labels from 0 to {classes - 1} and levels of at least 0"
        )
    level = np.minimum(level, np.iinfo(np.int64).max)
    return given.astype(np.int64), level.astype(np.int64)
