"""One bit per query, which says whether its largest vote, with noise, reaches a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.accounting.approximate_rdp import ApproximateRdp
from reticent.accounting.events import Cost, PoissonSampled
from reticent.accounting.screening import ScreeningDpEvent, screening_rdp
from reticent.core.arrays import Booleans, Integers
from reticent.core.checks import as_array, count, positive, probability, real
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.mechanisms.costs import rdp_epsilon
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler
from reticent.noise.samplers import checked_scale


@dataclass(frozen=True, kw_only=True)
class NoisyScreening(Mechanism):
    """A test that passes a query if its largest vote plus discrete Gaussian noise is at least the
    threshold.

    **Guarantee.** One bit costs ``event`` under the addition or removal of one record if two
    conditions hold. The votes are those of the ``neighbours`` nearest included records, each with
    one vote. Every record (unit) is included independently with ``sampling_probability``, afresh
    for this bit. ``guarantee`` states that cost at ``delta``. Many bits cost less than the sum of
    their guarantees. A failed screening costs as much as a passed one.

    *Why.* One record moves the largest vote by at most 1 (``reticent.neighbours.label_votes``), so
    the bit is Bernoulli with a pass probability that moves to that of a neighbouring count.
    docs/private-knn.md has the proof under sampling.

    *Floating point.* Votes and noise are integers. The threshold is rounded up to an integer, which
    passes the same votes.

    Attributes:
        neighbours: k, the largest possible number of votes.
        threshold: number of votes that must be reached, finite.
        sigma: parameter of the noise, in votes, above 0.
        sampling_probability: in (0, 1].
        delta: delta at which ``guarantee`` is stated, in (0, 1).

    Example:
        >>> from reticent.noise import SecureSampler
        >>> screening = NoisyScreening(
        ...     neighbours=300, threshold=180.0, sigma=0.5, sampling_probability=0.15, delta=1e-5
        ... )
        >>> screening.release([300, 20], sampler=SecureSampler()).tolist()
        [True, False]

    **Differs from the paper**: the noise is discrete, on integers, in place of a continuous normal
    variable in double precision. Counts begin at 0, because a sample can hold fewer than k records.

    Utility:
        A query whose largest vote is v passes with probability Phi((v - threshold) / sigma). A
        query two sigma above the threshold fails 2.3 % of the time. At sigma = 75, k = 300 and a
        sample of 15 % a bit costs epsilon = 0.0045 at delta = 1e-5.

    Runtime:
        O(1) a bit, 0.2 microseconds on one core (benchmarks/runtimes.py).

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, algorithm 1 and supplement, theorem 1.
        - Papernot et al. (2018), "Scalable private learning with PATE", arXiv:1802.08908 (the
          screening of queries by noisy consensus).

    See Also:
        reticent.mechanisms.NoisyArgmax: the label of a query that passed.
        reticent.accounting.screening_rdp: the cost.
    """

    neighbours: int
    threshold: float
    sigma: float
    sampling_probability: float
    delta: float

    name: ClassVar[str] = "noisy screening"

    def __post_init__(self) -> None:
        count(self.neighbours, name="neighbours")
        object.__setattr__(self, "sigma", checked_scale(self.sigma, "sigma"))
        object.__setattr__(self, "threshold", real(self.threshold, name="threshold"))
        if not math.isfinite(self.threshold):
            raise InvalidParameter(
                f"threshold={self.threshold!r}: expected a finite number of votes"
            )
        if positive(self.sampling_probability, name="sampling_probability") > 1:
            raise InvalidParameter(
                f"sampling_probability={self.sampling_probability!r}: expected a number in (0, 1]"
            )
        probability(self.delta, name="delta", allow_zero=False)

    @cached_property
    def _bit(self) -> ScreeningDpEvent:
        return ScreeningDpEvent(
            0, self.neighbours, float(self.threshold), float(self.sigma), discrete=True
        )

    @cached_property
    def guarantee(self) -> Guarantee:
        """Cost of one bit, stated at ``delta``."""
        rate = self.sampling_probability
        epsilon = rdp_epsilon(
            lambda orders: ApproximateRdp(
                orders, screening_rdp(self._bit, orders, sampling_probability=rate), 0.0
            ),
            delta=self.delta,
        )
        return Guarantee(epsilon, self.delta, AddRemove(1))

    @property
    @override
    def cost(self) -> Cost:
        """Cost of one bit, for accounting."""
        sampled = PoissonSampled(self.sampling_probability, self._bit)
        return sampled

    def release(self, largest_votes: npt.ArrayLike, *, sampler: Sampler) -> Booleans:
        """Return one bit per query, each a separate answer.

        Args:
            largest_votes: shape (n,), integers of 0 to ``neighbours``. Private.
            sampler: source of randomness.

        Returns:
            Shape (n,), True where the query passed.

        Raises:
            InvalidInput: wrong shape or type, or a count out of its range. Values are never shown.
        """
        votes = checked_votes(largest_votes, name="largest_votes", ndim=1, most=self.neighbours)
        noise = sampler.discrete_gaussian(votes.shape, sigma=self.sigma)
        # The threshold may lie far outside int64. There nothing or everything passes.
        reach = float(np.clip(math.ceil(self.threshold), -(2.0**62), 2.0**62))
        return np.asarray(votes + noise >= int(reach))


def checked_votes(votes: npt.ArrayLike, *, name: str, ndim: int, most: int) -> Integers:
    """Return ``votes`` as int64 of 0 to ``most``.

    Raises:
        InvalidInput: wrong shape, not integers, or out of range. Values are never shown.
    """
    array = as_array(votes, name=name)
    if array.ndim != ndim or (array.size and array.dtype.kind not in "iu"):
        raise InvalidInput(
            f"{name}: expected integers with {ndim} axes, got dtype={array.dtype} "
            f"shape={array.shape}"
        )
    if array.size and (array.min() < 0 or array.max() > most):
        raise InvalidInput(f"{name}: expected 0 to {most} votes; the guarantee covers no others")
    return array.astype(np.int64)
