"""Randomised response on a classifier's best label: private for any two inputs, the floor of every
table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Adjacency
from reticent.grids.shares import WHOLE, factor_below
from reticent.mechanisms.checked_table import draw
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ArgmaxResponse(Mechanism):
    """The label with the largest logit, or any other one with a share of 1 / (e^epsilon + c - 1).

    **Guarantee.** One label is (epsilon, 0)-private for *any two* inputs, so under every
    ``adjacency``; the classifier may be anything, certified or not.

    *Why.* A label's probability is one of two numbers, whatever the input: q, or 1 - (c - 1) q,
    which is at most e^epsilon q.

    *Floating point.* None: q is the least whole multiple of 2^-32 for which this holds with a
    rational number below e^epsilon, and a label is drawn by one uniform integer.

    Attributes:
        classes: number of labels c, 2 to 1000.
        epsilon: above 0.
        adjacency: what neighbours are.

    Example:
        >>> from reticent.core import Neighborhood, Norm
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> response = ArgmaxResponse(classes=10, epsilon=5.0, adjacency=near)
        >>> response.probabilities([[3.0] + [0.0] * 9]).round(4).tolist()[0][:2]
        [0.9428, 0.0064]

    Utility:
        The classifier's own label with probability e^epsilon / (e^epsilon + c - 1): 0.23, 0.45,
        0.943 and 0.9996 for ten labels at epsilon = 1, 2, 5 and 10; the most that is possible for
        any two inputs (Kairouz et al.).

    Runtime:
        O(classes) a label; 0.2 microseconds for 10 classes on one core (benchmarks/runtimes.py).

    References:
        - Warner (1965), "Randomized response: a survey technique for eliminating evasive answer
          bias", doi:10.1080/01621459.1965.10480775.
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, its optimality for several labels.

    See Also:
        reticent.mechanisms.LabelTable: better for small epsilon, within a radius.
        reticent.mechanisms.HopRelease: within a radius, for large epsilon.
        reticent.mechanisms.StabilityResponse: where distances to other labels are known.
    """

    classes: int
    epsilon: float
    adjacency: Adjacency

    name: ClassVar[str] = "argmax response"
    rests_on_float64: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 2 <= count(self.classes, name="classes") <= 1000:
            raise InvalidParameter(f"classes={self.classes!r}: expected 2 to 1000")
        positive(self.epsilon, name="epsilon")

    @cached_property
    def wrong_share(self) -> int:
        """Probability of each label but the best, in multiples of 2^-32."""
        factor = factor_below(self.epsilon)
        unit = 1 << factor.shift
        both: int = factor.numerator + (self.classes - 1) * unit
        share: int = -(-WHOLE * unit // both)
        return share

    def probabilities(self, logits: npt.ArrayLike) -> Array:
        """Probability of each label for each row of logits, shape (n, classes), exact.

        Args:
            logits: shape (n, classes), finite.
        """
        return np.asarray(self._shares(logits).T / WHOLE)

    def release(self, logits: npt.ArrayLike, *, sampler: Sampler) -> Labels:
        """One label for each row of logits.

        Args:
            logits: shape (n, classes), finite; never released as they are. The first of equal ones
                counts as largest.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. classes - 1.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        return draw(self._shares(logits), sampler)

    def _shares(self, logits: npt.ArrayLike) -> npt.NDArray[np.uint32]:
        array = finite_array(logits, name="logits", ndim=2, columns=self.classes, allow_empty=True)
        shares = np.full((self.classes, len(array)), self.wrong_share, dtype=np.uint32)
        right = WHOLE - (self.classes - 1) * self.wrong_share
        shares[array.argmax(axis=1), np.arange(len(array))] = right
        return shares
