"""Several attributes per query, each on if enough clipped votes, with noise, are for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.accounting.approximate_rdp import ApproximateRdp
from reticent.accounting.discrete_gaussian import sampled_gaussian_rdp
from reticent.core.arrays import Booleans, Integers
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.mechanisms.costs import rdp_epsilon
from reticent.mechanisms.noisy_screening import checked_votes
from reticent.noise import Sampler

VOTE_STEPS = 256
"""Number of integer steps in one whole vote, where votes may be fractions."""


@dataclass(frozen=True, kw_only=True)
class NoisyAttributes:
    """Attribute i of a query is on if its votes plus discrete Gaussian noise reach half of
    ``neighbours``.

    **Guarantee.** All attributes of one query together are the sampled Gaussian step of noise
    multiplier sigma / sqrt(min(2 tau, attributes)), under the addition or removal of one record.
    This holds under two conditions. Each of the ``neighbours`` nearest included records adds a vote
    vector of ``clipped_votes(..., tau=tau)``. Every record (unit) is included independently with
    ``sampling_probability``, afresh for this answer.

    *Why.* One record replaces one non-negative vector u by another, v, each of squared l2 norm at
    most tau. As u.v >= 0, |u - v|^2 <= |u|^2 + |v|^2 <= 2 tau. Entries lie between 0 and 1, so
    |u - v|^2 is at most their number too. At integer orders the Renyi divergence of the sampled
    step is that of continuous noise (``reticent.accounting.discrete_gaussian``), and no other
    orders are used.

    *Floating point.* Votes are integers of 1 / ``steps`` each, and so is the noise.

    Attributes:
        attributes: number of attributes, at least 1.
        neighbours: k, the number of records that vote.
        tau: number of whole votes of one record, at least 1.
        sigma: parameter of the noise of every attribute, in whole votes, above 0.
        sampling_probability: in (0, 1].
        delta: delta at which ``guarantee`` is stated, in (0, 1).
        steps: number of integer steps in one whole vote, as in ``VOTE_STEPS``.

    Example:
        >>> from reticent.noise import SecureSampler
        >>> mechanism = NoisyAttributes(
        ...     attributes=2,
        ...     neighbours=100,
        ...     tau=2,
        ...     sigma=1.0,
        ...     sampling_probability=0.1,
        ...     delta=1e-5,
        ...     steps=256,
        ... )
        >>> mechanism.release([[90 * 256, 10 * 256]], sampler=SecureSampler()).tolist()
        [[True, False]]

    Utility:
        An attribute with v votes is wrong with probability Phi(-|v - neighbours / 2| / sigma). That
        is 0.02 where 50 votes more or less than half have it and sigma = 25. Smaller tau costs less
        and pulls votes towards 0.

    Runtime:
        O(attributes) a query.

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, supplement C, theorem 5 (for tau up to
          half of the attributes).
        - Mironov, Talwar and Zhang (2019), "Rényi differential privacy of the sampled Gaussian
          mechanism", arXiv:1908.10530 (the sampled Gaussian step).

    See Also:
        reticent.mechanisms.NoisyArgmax: one label of several.
    """

    attributes: int
    neighbours: int
    tau: int
    sigma: float
    sampling_probability: float
    delta: float
    steps: int

    name: ClassVar[str] = "noisy attributes"

    def __post_init__(self) -> None:
        for field in ("attributes", "neighbours", "tau", "steps"):
            count(getattr(self, field), name=field)
        object.__setattr__(self, "sigma", positive(self.sigma, name="sigma"))
        if positive(self.sampling_probability, name="sampling_probability") > 1:
            raise InvalidParameter(
                f"sampling_probability={self.sampling_probability!r}: expected a number in (0, 1]"
            )
        probability(self.delta, name="delta", allow_zero=False)

    @property
    def sensitivity(self) -> float:
        """Largest l2 distance, in whole votes, that one record moves the votes."""
        return math.sqrt(min(2 * self.tau, self.attributes))

    @property
    def noise_multiplier(self) -> float:
        """Sigma over the l2 sensitivity."""
        return self.sigma / self.sensitivity

    @cached_property
    def guarantee(self) -> Guarantee:
        """Cost of all attributes of one query, stated at ``delta``."""
        multiplier, rate = self.noise_multiplier, self.sampling_probability
        epsilon = rdp_epsilon(
            lambda orders: ApproximateRdp(
                orders,
                sampled_gaussian_rdp(
                    orders, noise_multiplier=multiplier, sampling_probability=rate
                ),
                0.0,
            ),
            delta=self.delta,
        )
        return Guarantee(epsilon, self.delta, AddRemove(1))

    def release(self, votes: npt.ArrayLike, *, sampler: Sampler) -> Booleans:
        """Return all attributes of each query, each row a separate answer.

        Args:
            votes: shape (n, attributes), integer steps, at most ``tau * neighbours * steps`` in a
                row. Private.
            sampler: source of randomness.

        Raises:
            InvalidInput: wrong shape or type, or too many votes. Values are never shown.
        """
        counts = checked_votes(votes, name="votes", ndim=2, most=self.neighbours * self.steps)
        if counts.shape[1] != self.attributes or bool(
            (counts.sum(axis=1) > self.tau * self.neighbours * self.steps).any()
        ):
            raise InvalidInput(
                f"votes: expected {self.attributes} columns of clipped votes, at most tau * "
                "neighbours in all, "
                f"got shape={counts.shape}"
            )
        noisy = counts + sampler.discrete_gaussian(counts.shape, sigma=self.sigma * self.steps)
        return np.asarray(2 * noisy >= self.neighbours * self.steps)


def weight_votes(chosen: Integers, weights: Integers) -> Integers:
    """Return the sum of the vote vectors of the chosen records, shape (b, c), from ``weights`` of
    shape (n, c). Private.
    """
    padded = np.concatenate([weights, np.zeros((1, weights.shape[1]), dtype=np.int64)])
    return (
        np.stack([padded[row].sum(axis=0) for row in chosen])
        if len(chosen)
        else np.zeros((0, weights.shape[1]), dtype=np.int64)
    )


def clipped_votes(attributes: npt.ArrayLike, *, tau: int) -> Integers:
    """Return vote vectors of at most ``tau`` whole votes each, in steps of 1 / VOTE_STEPS of a
    vote.

    A record with more than tau attributes spreads tau votes evenly over them, rounded down to whole
    steps.

    **Guarantee.** Each entry is at most VOTE_STEPS and each row sums to at most tau VOTE_STEPS, so
    the squared l2 norm of a row is at most tau VOTE_STEPS^2. Rows have no negative entries, so two
    of them differ by at most sqrt(2 tau) VOTE_STEPS in l2 and 2 tau VOTE_STEPS in l1.

    Args:
        attributes: shape (n, c), 0 or 1.
        tau: number of whole votes of one record, at least 1.

    Returns:
        Shape (n, c), int64.

    Raises:
        InvalidInput: entries other than 0 and 1, or not two axes.

    Example:
        >>> clipped_votes([[1, 1, 1, 0], [0, 1, 0, 0]], tau=2).tolist()
        [[170, 170, 170, 0], [0, 256, 0, 0]]

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, supplement C, definition 4 (for l1).
          The l2 statement is in docs/private-knn.md.
    """
    bits = np.asarray(attributes)
    if (
        bits.ndim != 2
        or bits.dtype.kind not in "iubf"
        or not bool(((bits == 0) | (bits == 1)).all())
    ):
        raise InvalidInput(
            f"attributes: expected zeros and ones of shape (n, c), got shape={bits.shape} "
            f"dtype={bits.dtype}"
        )
    whole = bits.astype(np.int64)
    owned = np.maximum(whole.sum(axis=1, keepdims=True), 1)
    return np.asarray(whole * np.minimum(VOTE_STEPS, count(tau, name="tau") * VOTE_STEPS // owned))
