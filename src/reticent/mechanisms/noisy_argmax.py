"""One label per query, the class with the most votes, noise included."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.accounting.events import Cost, PoissonSampled
from reticent.accounting.noisy_argmax import NoisyArgmaxDpEvent, noisy_argmax_rdp
from reticent.core.arrays import Integers
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.mechanisms.costs import rdp_epsilon
from reticent.mechanisms.mechanism import Mechanism
from reticent.mechanisms.noisy_screening import checked_votes
from reticent.noise import Sampler
from reticent.noise.samplers import checked_scale


@dataclass(frozen=True, kw_only=True)
class NoisyArgmax(Mechanism):
    """The class whose votes plus discrete Gaussian noise are most, or the first of several.

    **Guarantee.** One label costs ``event`` under the addition or removal of one record if two
    conditions hold. The votes are those of the ``neighbours`` nearest included records, each with
    one vote. Every record (unit) is included independently with ``sampling_probability``, afresh
    for this label. ``guarantee`` states that cost at ``delta``. Many labels cost less than the sum
    of their guarantees.

    *Why.* One record moves at most one vote from one class to another. All noisy votes together
    would be a Gaussian mechanism of sensitivity sqrt(2). Only the winner is released, which costs
    about two thirds of it (``reticent.accounting.noisy_argmax``).

    *Floating point.* Votes and noise are integers, and ties go by the order of the classes, which
    is public.

    Attributes:
        classes: number of classes, at least 2.
        neighbours: k, the largest possible number of votes.
        sigma: parameter of the noise of every class, in votes, above 0.
        sampling_probability: in (0, 1].
        delta: delta at which ``guarantee`` is stated, in (0, 1).

    Example:
        >>> from reticent.noise import SecureSampler
        >>> argmax = NoisyArgmax(
        ...     classes=3, neighbours=300, sigma=2.0, sampling_probability=0.15, delta=1e-5
        ... )
        >>> argmax.release([[10, 280, 10]], sampler=SecureSampler()).tolist()
        [1]

    **Differs from the paper**: the noise is discrete, on integers. The paper charges the noisy
    votes, which are never released.

    Utility:
        With two classes g votes apart the wrong one wins with probability Phi(-g / (sigma
        sqrt(2))). For sigma = 25 that is 0.08 at 50 votes and 0.002 at 100, and one label on a
        sample of 15 % costs epsilon = 0.025 at delta = 1e-5.

    Runtime:
        O(classes) a label, 0.7 microseconds for 10 classes on one core (benchmarks/runtimes.py).
        The cost of a label is computed once, in seconds. The caller finds the neighbours.

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, algorithm 1.
        - Papernot et al. (2018), "Scalable private learning with PATE", arXiv:1802.08908 (noisy
          argmax of votes).
        - The cost of the winner alone: docs/private-knn-accounting.md, theorem 2.

    See Also:
        reticent.mechanisms.NoisyScreening: a choice beforehand of the queries that are worth a
            label.
        reticent.accounting.noisy_argmax_rdp: the cost.
        reticent.neighbours.label_votes: the votes.
    """

    classes: int
    neighbours: int
    sigma: float
    sampling_probability: float
    delta: float

    name: ClassVar[str] = "noisy argmax"

    def __post_init__(self) -> None:
        count(self.classes, name="classes", minimum=2)
        count(self.neighbours, name="neighbours")
        object.__setattr__(self, "sigma", checked_scale(self.sigma, "sigma"))
        if positive(self.sampling_probability, name="sampling_probability") > 1:
            raise InvalidParameter(
                f"sampling_probability={self.sampling_probability!r}: expected a number in (0, 1]"
            )
        probability(self.delta, name="delta", allow_zero=False)

    @cached_property
    def _label(self) -> NoisyArgmaxDpEvent:
        return NoisyArgmaxDpEvent(float(self.sigma))

    @cached_property
    def guarantee(self) -> Guarantee:
        """Cost of one label, stated at ``delta``."""
        rate = self.sampling_probability
        epsilon = rdp_epsilon(
            lambda orders: noisy_argmax_rdp(self._label, orders, sampling_probability=rate),
            delta=self.delta,
        )
        return Guarantee(epsilon, self.delta, AddRemove(1))

    @property
    @override
    def cost(self) -> Cost:
        """Cost of one label, for accounting."""
        sampled = PoissonSampled(self.sampling_probability, self._label)
        return sampled

    def release(self, votes: npt.ArrayLike, *, sampler: Sampler) -> Integers:
        """Return one label per query, each a separate answer.

        Args:
            votes: shape (n, classes), integers of 0 to ``neighbours``, at most ``neighbours`` in a
                row. Private.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. classes - 1.

        Raises:
            InvalidInput: wrong shape or type, or too many votes. Values are never shown.
        """
        counts = checked_votes(votes, name="votes", ndim=2, most=self.neighbours)
        if counts.shape[1] != self.classes or bool((counts.sum(axis=1) > self.neighbours).any()):
            raise InvalidInput(
                f"votes: expected {self.classes} columns with at most {self.neighbours} votes "
                f"in all, got shape={counts.shape}"
            )
        noisy = counts + sampler.discrete_gaussian(counts.shape, sigma=self.sigma)
        return np.asarray(noisy.argmax(axis=1), dtype=np.int64)
