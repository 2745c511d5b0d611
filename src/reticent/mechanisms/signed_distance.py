"""A certified label read off its signed distance plus Gaussian noise, which is cheap for many
answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr
from typing_extensions import override

from reticent.accounting.events import Cost, GaussianCost, PrivacyEvent, ZeroConcentratedCost
from reticent.accounting.exact_gaussian import GaussianAccountant
from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import AddRemove, Adjacency, Guarantee
from reticent.mechanisms.gaussian import analytic_sigma
from reticent.mechanisms.mechanism import Mechanism
from reticent.mechanisms.stability_response import checked_labels
from reticent.noise import Sampler

_STEPS = 40
"""Least number of grid steps in one sigma of the noise, as a power of two."""

_TAIL = 36.0
"""Draws beyond this many sigma count as failures, as in ``GaussianMechanism``."""

_FAILURE = math.exp(-0.5 * _TAIL**2)

_CLOSENESS = (_TAIL**2 + 4.0) / 8.0 * 4.0**-_STEPS
"""Largest |log| of the ratio of discrete to rounded continuous noise within the tail, for one
coordinate. It is below 2e-22.
"""

_SURE = 40.0
"""A label this many sigma from changing is wrong once in 10^300 answers."""

_MOST_ANSWERS = 2**40

_LARGEST_TOTAL = 400.0
"""Totals above this are not told apart from infinity."""

_MOST_MULTIPLIER = 2.0**30
_NODES = 300


@dataclass(frozen=True, kw_only=True)
class SignedDistanceRelease(Mechanism):
    """The label on which a signed distance plus Gaussian noise is largest.

    **Guarantee.** One answer is (epsilon, delta)-private under ``adjacency`` if the label and its
    level have these two properties: neighbours' levels differ by at most 1, and neighbours with
    different labels both have level 0. Q answers are together (``total(answers=Q, delta=...)``,
    delta)-private, where Q is fixed beforehand and each query may be chosen after the answers
    before it.

    *Why.* With c classes the label l and level k become the point (k + a) s_l, where s_0 .. s_(c-1)
    are the corners of the regular simplex on the unit sphere and a = sqrt((c - 1) / (2 c)). Equal
    labels lie at most 1 apart. Different labels lie a |s_l - s_m| = a sqrt(2 c / (c - 1)) = 1
    apart. So the point has l2 sensitivity 1, and the answer is a function of it plus N(0, sigma^2
    I). This is a post-processed Gaussian mechanism, whose Q-fold composition is one Gaussian
    mechanism of sigma / sqrt(Q), exactly. In practice only the coordinate of the label is moved, by
    (k + a) sqrt(c / (c - 1)). This differs from the point of the simplex by a number common to all
    coordinates, which does not change the place of the largest. For two classes the point is the
    number +-(k + 1/2).

    *Floating point.* All numbers are whole. With n steps the label's coordinate is c n k + isqrt(c
    (c - 1) n^2 / 2), and levels differ by whole vectors of length n sqrt(c (c - 1)) (common part
    taken off). The noise is the discrete Gaussian, drawn exactly, and the event is zCDP of that
    noise itself. ``guarantee`` and ``total`` are those of continuous noise rounded to the grid,
    with the distance of the two distributions charged once for each answer and coordinate. With
    2^40 steps in a sigma it is 2e-22.

    *Differs from the paper.* The paper adds Cauchy noise of a scale that depends on the distance.

    Attributes:
        classes: number of labels c, 2 to 1000.
        epsilon: epsilon of one answer, above 0, at most 100.
        delta: delta of one answer, in [1e-50, 1).
        adjacency: the relation of neighbours.

    Example:
        >>> from reticent.core import AddRemove
        >>> from reticent.noise import SecureSampler
        >>> release = SignedDistanceRelease.for_answers(
        ...     classes=2, epsilon=10.0, delta=1e-5, answers=11_200, adjacency=AddRemove(1)
        ... )
        >>> round(release.noise_multiplier, 1)
        52.9
        >>> round(release.total(answers=11_200, delta=1e-5), 4)
        10.0
        >>> release.release([1, 0], [3000, 5000], sampler=SecureSampler()).tolist()
        [1, 0]

    Utility:
        Of two labels the right one comes out with probability Phi((k + 1/2) / sigma) at level k.
        With 11,200 answers for epsilon = 10 and delta = 1e-5 in total that is 0.58, 0.83 and 0.97
        at levels 10, 50 and 100. One answer at epsilon = 1 is right with probability 0.55, 0.83 and
        0.93 at levels 0, 3 and 5. That is less than ``StabilityResponse``, which needs no delta
        there.

    Runtime:
        O(c) an answer, 0.5 microseconds for two labels and 2.4 for ten on one core
        (benchmarks/runtimes.py).

    References:
        - Dong, Roth and Su (2022), "Gaussian differential privacy", arXiv:1905.02383, corollary 3.3
          (composition).
        - Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy:
          analytical calibration and optimal denoising", arXiv:1805.06530, theorem 8.
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, proposition 5 (Rényi divergence of the discrete Gaussian).
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433 (stable distances of a trained model).

    See Also:
        reticent.mechanisms.StabilityResponse: better for one answer and for few.
        reticent.published.SmoothCauchy: the published response.
    """

    classes: int
    epsilon: float
    delta: float
    adjacency: Adjacency

    name: ClassVar[str] = "signed distance"

    def __post_init__(self) -> None:
        if not 2 <= count(self.classes, name="classes") <= 1000:
            raise InvalidParameter(f"classes={self.classes!r}: expected 2 to 1000")
        _checked_total(self.epsilon, self.delta)

    @classmethod
    def for_answers(
        cls, *, classes: int, epsilon: float, delta: float, answers: int, adjacency: Adjacency
    ) -> SignedDistanceRelease:
        """Return the release of which ``answers`` answers cost at most (``epsilon``, ``delta``)
        together.

        One answer is stated at ``delta / answers``.

        Args:
            classes: number of labels, 2 to 1000.
            epsilon: total epsilon, above 0, at most 100.
            delta: total delta, in [1e-50, 1).
            answers: number of answers, 1 to 2^40, fixed before the first one.
            adjacency: the relation of neighbours.
        """
        _checked_total(epsilon, delta)
        asked = _answers(answers)
        scale = math.sqrt(asked)
        multiplier = scale * _multiplier(epsilon, delta, classes, asked)
        while True:
            # Rounding on the way to one answer's epsilon and back can cost a relative 1e-7.
            each = _epsilon(multiplier, delta / asked, classes, 1)
            found = cls(classes=classes, epsilon=each, delta=delta / asked, adjacency=adjacency)
            if found.total(answers=asked, delta=delta) <= epsilon:
                return found
            multiplier *= 1.0 + 1e-7

    @property
    @override
    def cost(self) -> Cost:
        """Cost of one answer, for accounting: (1 / (2 noise_multiplier^2))-zCDP, which holds for
        the discrete noise itself.
        """
        sensitivity, sigma = self._scales
        return ZeroConcentratedCost(0.5 * (sensitivity / sigma) ** 2)

    @cached_property
    def noise_multiplier(self) -> float:
        """Sigma in units of the level."""
        return _multiplier(self.epsilon, self.delta, self.classes, 1)

    @property
    def max_level(self) -> int:
        """Largest level. Higher ones count as this one, since noise does not reach so far."""
        return math.ceil(_SURE * self.noise_multiplier) + 1

    def total(self, *, answers: int, delta: float) -> float:
        """Return epsilon of ``answers`` answers together at ``delta``, infinite above 400. Their
        number is fixed beforehand.

        Args:
            answers: number of answers, 1 to 2^40.
            delta: in [1e-50, 1).
        """
        asked = _answers(answers)
        _checked_total(1.0, delta)
        return _epsilon(self.noise_multiplier, delta, self.classes, asked)

    def right_probabilities(self, levels: npt.ArrayLike) -> Array:
        """Return the probability that the given label is the answer, at each level, shape (n,).

        It is that of the continuous noise, by quadrature for more than two classes, to about 1e-9.
        """
        level = np.minimum(np.asarray(levels, dtype=np.float64), self.max_level)
        others = self.classes - 1
        offset = math.sqrt(others / (2.0 * self.classes))
        if others == 1:
            return np.asarray(ndtr((level + offset) / self.noise_multiplier))
        reach = (level + offset) * math.sqrt(self.classes / others) / self.noise_multiplier
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        shown, place = np.unique(reach, return_inverse=True)
        values = ndtr(nodes + shown[:, None]) ** others @ weights / math.sqrt(2.0 * math.pi)
        return np.asarray(np.minimum(values, 1.0)[place])

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
        unit, (_, sigma) = self._unit, self._scales
        if self.classes == 2:
            signed = np.where(given == 1, 1, -1) * (2 * level + 1) * unit
            return (signed + sampler.discrete_gaussian(signed.shape, sigma=sigma) > 0).astype(
                np.int64
            )
        scores = sampler.discrete_gaussian((len(given), self.classes), sigma=sigma)
        least = math.isqrt(self.classes * (self.classes - 1) * unit * unit // 2)
        scores[np.arange(len(given)), given] += least + self.classes * unit * level
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)

    @property
    def _unit(self) -> int:
        """Grid steps n of the guarantee's proof, a power of two chosen from public settings."""
        return int(2 ** max(0, _STEPS - math.floor(math.log2(self.noise_multiplier))))

    @property
    def _scales(self) -> tuple[float, float]:
        """Sensitivity, rounded up, and sigma of the noise, in grid steps."""
        length = self._unit * (
            2.0
            if self.classes == 2
            else math.sqrt(self.classes * (self.classes - 1)) * (1.0 + 2.0**-50)
        )
        return length, length * self.noise_multiplier * (1.0 + 2.0**-50)


def _answers(answers: int) -> int:
    if count(answers, name="answers") > _MOST_ANSWERS:
        raise InvalidParameter(f"answers={answers!r}: expected at most 2**40")
    return answers


def _checked_total(epsilon: float, delta: float) -> None:
    if positive(epsilon, name="epsilon") > 100:
        raise InvalidParameter(f"epsilon={epsilon!r}: expected at most 100")
    if probability(delta, name="delta", allow_zero=False) < 1e-50:
        raise InvalidParameter(f"delta={delta!r}: expected at least 1e-50")


def _charges(classes: int, answers: int) -> tuple[float, float]:
    """Return the cost of the difference of discrete and rounded noise: the part taken off epsilon,
    and the probability of failure.
    """
    draws = float((1 if classes == 2 else classes) * answers)
    return 2.0 * draws * _CLOSENESS, 2.0 * draws * _FAILURE


def _multiplier(epsilon: float, delta: float, classes: int, answers: int) -> float:
    """Return the smallest noise multiplier of one answer in the place of ``answers``."""
    closeness, failure = _charges(classes, answers)
    left = (delta - failure * (1.0 + math.exp(epsilon))) * math.exp(-closeness)
    if epsilon <= closeness or left <= 0:
        raise InvalidParameter(
            f"epsilon={epsilon!r}, delta={delta!r}: below the resolution of the noise"
        )
    found = analytic_sigma(sensitivity=1.0, epsilon=epsilon - closeness, delta=left)
    if found * math.sqrt(answers) > _MOST_MULTIPLIER:
        raise InvalidParameter(
            f"epsilon={epsilon!r}, answers={answers}: noise beyond 2**30 levels; ask for a larger "
            "epsilon or fewer answers"
        )
    return found


def _epsilon(multiplier: float, delta: float, classes: int, answers: int) -> float:
    """Return epsilon of ``answers`` answers at ``delta``, infinite above ``_LARGEST_TOTAL``."""
    closeness, failure = _charges(classes, answers)
    left = (delta - failure * (1.0 + math.exp(_LARGEST_TOTAL))) * math.exp(-closeness)
    adjacency = AddRemove(1)  # the arithmetic is that of any
    event = PrivacyEvent("noise", Guarantee(1.0, 0.0, adjacency), GaussianCost(multiplier))
    accountant = GaussianAccountant(adjacency).compose(event, answers)
    found = accountant.epsilon(delta=left) + closeness
    return max(found, 1e-12) if found <= _LARGEST_TOTAL else math.inf
