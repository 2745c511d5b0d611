"""The exact privacy of Gaussian noise where every record has a capped budget of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reticent.accounting.composition import smallest_without
from reticent.accounting.exact_gaussian import gaussian_delta
from reticent.core.checks import count, positive, probability
from reticent.core.errors import CalibrationFailed, InvalidParameter

_TAIL = 16.0
"""Draws beyond this many sigma count as failures. Their probability, 2 exp(-128), comes off
delta.
"""

_FINEST = 1024.0
"""Least noise in grid steps for which the distance to rounded Gaussian noise is stated."""

_MARGIN = 1e-12
"""Relative share for the roundings of the few operations between the parameters and the
multiplier.
"""

_WIDEST = 2.0**49

_LARGEST_EPSILON = 64.0
"""A larger epsilon gets the noise of this one, because the tail that counts as failures is weighed
with exp(epsilon).
"""


@dataclass(frozen=True, kw_only=True)
class IndividualGaussianBudget:
    """A cap on each record's spending in sums of integer contributions with discrete Gaussian
    noise.

    An answer of *precision* p adds noise of parameter sigma / sqrt(p) to every coordinate of a sum
    of integer vectors, one for each record. A record whose vector is c spends p |c|^2, and is left
    out of an answer that would take its spending above ``cap``.

    **Guarantee.** Everything released is (``epsilon(delta)``, delta)-differentially private under
    the addition or removal of one record. Each answer's question, precision and number may depend
    on all earlier answers, and the number of answers has no limit. It is also (cap / (2
    sigma^2))-zCDP.

    *Why.* The released answers and another record alone decide whether that other record takes
    part. So on equal answers the sums with and without a record differ by its own vector where it
    takes part, and nowhere else. The sum of p |c|^2 / sigma^2 over all answers is at most mu^2 =
    cap / sigma^2 on every run. With continuous noise that is mu-Gaussian differential privacy,
    whose delta is ``gaussian_delta`` of the multiplier 1 / mu. Discrete noise differs from rounded
    continuous noise by a factor e^eta for each coordinate, |log| <= eta = (16^2 + 4) / (8 s^2) up
    to 16 s, where s is the smallest noise in use (``GaussianMechanism``). Only answers that the
    record takes part in are compared with rounded noise, since in all others both sides have the
    same distribution. These answers are at most cap / least. So with m = coordinates cap / least
    and tau = m 2 exp(-16^2 / 2): delta(e) = exp(m eta) delta_mu(e - 2 m eta) + tau (1 + exp(e)).

    Attributes:
        sigma: parameter of the noise at precision 1, in steps of the contributions.
        cap: most that one record spends, in squared steps.
        least: the smallest p |c|^2 other than 0 that there can be, in squared steps.
        coordinates: of a contribution, at least 1.
        precision: the largest precision that is used, at least 1.

    Example:
        >>> budget = IndividualGaussianBudget(sigma=4e6, cap=10**12, least=10**8, coordinates=2)
        >>> round(budget.epsilon(delta=1e-5), 4), budget.most_answers
        (0.9263, 10000)

    References:
        - Feldman and Zrnic (2021), "Individual privacy accounting via a Rényi filter",
          arXiv:2008.11193, theorem 4.5 (individual filters).
        - Koskela, Tobaben and Honkela (2023), "Individual privacy accounting with Gaussian
          differential privacy", arXiv:2209.15596, theorem 7.
        - Smith and Thakurta (2022), "Fully adaptive composition for Gaussian differential privacy",
          arXiv:2210.17520.
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, proposition 5 (discrete noise).
        - The bound on the answers that a record takes part in, and with it the exact Gaussian curve
          for discrete noise, is ours: docs/private-knn.md.

    See Also:
        reticent.accounting.IndividualFilter: lets records into answers.
        reticent.accounting.calibrate_individual_gaussian: the least noise for a total.
        reticent.IndividualKNNClassifier: the estimator.
        reticent.mechanisms.NoisySums: a number of sums that is fixed beforehand.
    """

    sigma: float
    cap: int
    least: int
    coordinates: int
    precision: int = 1

    def __post_init__(self) -> None:
        positive(self.sigma, name="sigma")
        if count(self.cap, name="cap") < count(self.least, name="least"):
            raise InvalidParameter(
                f"cap={self.cap}: expected at least least={self.least}, one smallest contribution"
            )
        count(self.coordinates, name="coordinates")
        count(self.precision, name="precision")
        if self.sigma / math.sqrt(self.precision) < _FINEST:
            raise InvalidParameter(
                f"sigma={self.sigma!r}: expected noise of at least {_FINEST:g} steps at the "
                f"largest precision, {self.precision}; use finer steps"
            )

    @property
    def most_answers(self) -> int:
        """Largest number of answers that one record takes part in."""
        return self.cap // self.least

    @property
    def multiplier(self) -> float:
        """1 / mu: the noise multiplier of the one Gaussian answer that all of them are worth."""
        return (1 - _MARGIN) * self.sigma / math.sqrt(self.cap)

    @property
    def rho(self) -> float:
        """zCDP of everything released, which holds for the discrete noise itself."""
        return 0.5 / self.multiplier**2

    def delta(self, *, epsilon: float) -> float:
        """Return delta at ``epsilon`` of at least 0, rounded up, at most 1."""
        terms = self.most_answers * self.coordinates
        eta = (_TAIL**2 + 4) * self.precision / (8 * self.sigma**2)
        rest = epsilon - 2 * terms * eta
        if rest < 0:
            return 1.0
        gaussian = gaussian_delta(noise_multiplier=self.multiplier, epsilon=rest)
        tail = 2 * terms * math.exp(-0.5 * _TAIL**2)
        return min(
            1.0,
            (1 + _MARGIN)
            * (math.exp(terms * eta) * gaussian + tail * (1 + math.exp(min(epsilon, 500.0)))),
        )

    def epsilon(self, *, delta: float) -> float:
        """Return the smallest epsilon at ``delta``, in (0, 1), rounded up.

        Raises:
            InvalidParameter: delta is too small for discrete noise.
        """
        delta = probability(delta, name="delta", allow_zero=False)
        upper = 1.0
        while self.delta(epsilon=upper) > delta:
            upper *= 2
            if upper > 1e4:
                raise InvalidParameter(
                    f"delta={delta!r}: expected more for sigma={self.sigma!r}; use finer steps"
                )
        return smallest_without(lambda epsilon: self.delta(epsilon=epsilon) > delta, upper)


def calibrate_individual_gaussian(
    *, epsilon: float, delta: float, cap: int, least: int, coordinates: int, precision: int = 1
) -> IndividualGaussianBudget:
    """Return the budget with the least noise, to 1e-9, that keeps (``epsilon``, ``delta``).

    Args:
        epsilon: epsilon of everything that is released, above 0. From 64 on the noise is that of
            64.
        delta: in (0, 1).
        cap, least, coordinates, precision: attributes of ``IndividualGaussianBudget``.

    Raises:
        CalibrationFailed: no noise that the samplers hold is enough.

    Example:
        >>> budget = calibrate_individual_gaussian(
        ...     epsilon=1.0, delta=1e-5, cap=10**12, least=10**8, coordinates=2
        ... )
        >>> round(budget.multiplier, 3)
        3.731

    References:
        - Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy:
          analytical calibration and optimal denoising", arXiv:1805.06530, theorem 8.
        - Koskela, Tobaben and Honkela (2023), "Individual privacy accounting with Gaussian
          differential privacy", arXiv:2209.15596, theorem 7.

    See Also:
        reticent.accounting.IndividualGaussianBudget: the guarantee.
        reticent.accounting.noise_multiplier: sampled Gaussian noise.
    """
    target = min(positive(epsilon, name="epsilon"), _LARGEST_EPSILON)
    delta = probability(delta, name="delta", allow_zero=False)

    def at(sigma: float) -> IndividualGaussianBudget:
        return IndividualGaussianBudget(
            sigma=sigma, cap=cap, least=least, coordinates=coordinates, precision=precision
        )

    lower = _FINEST * math.sqrt(precision) * (1 + _MARGIN)
    if at(lower).delta(epsilon=target) <= delta:
        return at(lower)
    upper = 2 * lower
    while at(upper).delta(epsilon=target) > delta:
        lower, upper = upper, 2 * upper
        if upper > _WIDEST:
            raise CalibrationFailed(
                f"no noise up to {_WIDEST:g} steps brings a record's cap of {cap} squared steps "
                f"to epsilon={target:g}, delta={delta:g}; lower the cap or raise epsilon"
            )
    while upper > (1 + 1e-9) * lower:
        middle = 0.5 * (lower + upper)
        lower, upper = (
            (lower, middle) if at(middle).delta(epsilon=target) <= delta else (middle, upper)
        )
    return at(upper)
