"""Gaussian noise for l2 sensitivities, at the smallest sigma that epsilon and delta allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr
from typing_extensions import override

from reticent.accounting.events import Cost, ZeroConcentratedCost
from reticent.core.arrays import Array, Integers
from reticent.core.checks import positive, probability
from reticent.core.errors import InvalidParameter
from reticent.core.norms import Norm
from reticent.mechanisms.additive import AdditiveMechanism
from reticent.noise import Sampler
from reticent.noise.samplers import checked_scale

_TAIL = 36.0
"""Draws beyond this many sigma count as failures. Their probability, 2 exp(-648), is taken off
delta.
"""

_SAFETY = 1.0 + 1e-7
"""Margin that enlarges sigma past every rounding error of its computation (below 1e-10 in the
tests).
"""


@dataclass(frozen=True, kw_only=True)
class GaussianMechanism(AdditiveMechanism):
    """A vector plus discrete Gaussian noise, independent in each coordinate.

    **Guarantee.** If the values of any two neighbours under ``adjacency`` differ by at most
    ``sensitivity`` in **l2**, and each is computed to within ``evaluation_error`` per coordinate,
    one released row is (epsilon, delta)-private. It is also (alpha, alpha D^2 / (2 sigma^2))-Renyi
    private for every alpha > 1, as the continuous Gaussian is.

    *Why.* Let D be the discrete Gaussian and Q the continuous one rounded to integers. Q is a
    post-processing of the continuous mechanism, whose exact delta is ``gaussian_delta``. For |v| <=
    36 sigma, log(Q(v)/D(v)) is at most eta = 1300/(8 sigma^2) in absolute value, because Q(v)/D(v)
    is the mean of cosh(v t/sigma^2) exp(-t^2/2 sigma^2) over |t| <= 1/2, times a ratio of
    normalisers. Beyond lies a mass tau = 2 m exp(-648). So epsilon is lowered by 2 m eta and delta
    by (1 + e^epsilon) tau before sigma is computed (with 2^20 steps in sigma, m eta is below 2e-10
    m).

    *Floating point.* The integer noise is exact, and the computed sigma is enlarged by 1e-7 of
    itself.

    Attributes:
        delta: in (0, 1).

    Example:
        >>> from reticent.core import Neighborhood
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> mechanism = GaussianMechanism(
        ...     sensitivity=1.0, epsilon=1.0, delta=1e-5, dimension=3, adjacency=near
        ... )
        >>> round(mechanism.scale, 3)
        3.731

    Utility:
        Each coordinate errs with standard deviation sigma, the vector by about sigma sqrt(m) in l2.
        At sensitivity 1 sigma is 3.73 for epsilon = 1, delta = 1e-5. The Laplace mechanism errs
        with deviation 1.41 there if the l1 sensitivity is 1 as well. It errs more than Gaussian
        noise where the l1 sensitivity exceeds 2.64 times the l2 one (it can be sqrt(m) times as
        large).

    Runtime:
        O(m) a row, 0.9 microseconds for 8 coordinates on one core (benchmarks/runtimes.py). Sigma
        is found once, in 30 microseconds.

    References:
        - Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy:
          analytical calibration and optimal denoising", arXiv:1805.06530, theorem 8.
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, proposition 5 (Rényi divergence of the discrete Gaussian).
        - Bun and Steinke (2016), "Concentrated differential privacy: simplifications, extensions,
          and lower bounds", arXiv:1605.02065 (totals of many answers).

    See Also:
        reticent.mechanisms.KNormMechanism: l2 noise without a delta.
        reticent.mechanisms.LaplaceMechanism: for l1 sensitivities.
        reticent.mechanisms.analytic_sigma: sigma alone.
        reticent.accounting.GaussianAccountant: exact totals, for continuous noise.
    """

    delta: float

    name: ClassVar[str] = "Gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", probability(self.delta, name="delta", allow_zero=False))
        if self.epsilon > 500:
            raise InvalidParameter(
                f"epsilon={self.epsilon!r}: expected at most 500 for Gaussian noise"
            )
        if self.delta < 1e-50:
            raise InvalidParameter(
                f"delta={self.delta!r}: expected at least 1e-50 for Gaussian noise"
            )
        checked_scale(self.steps_scale, "sigma")

    @property
    def norm(self) -> Norm:
        """The l2 norm."""
        return Norm.L2

    @property
    @override
    def cost(self) -> Cost:
        """Cost of one released vector: (D^2 / (2 sigma^2))-zCDP, which holds for the discrete noise
        itself and for any number of releases.
        """
        rho = 0.5 * (self.steps_sensitivity / self.steps_scale) ** 2
        return ZeroConcentratedCost(rho)

    @cached_property
    def steps_scale(self) -> float:
        """Sigma of the integer noise, in grid steps."""
        rough = analytic_sigma(
            sensitivity=self.steps_sensitivity, epsilon=self.epsilon, delta=self.delta
        )
        # eta falls with sigma, and sigma only grows from here, so the rough value gives an upper
        # bound of eta.
        eta = (_TAIL**2 + 4.0) / (8.0 * rough * rough)
        epsilon = self.epsilon - 2.0 * self.dimension * eta
        tail = 2.0 * self.dimension * math.exp(-0.5 * _TAIL**2) * (1.0 + math.exp(self.epsilon))
        delta = (self.delta - tail) * math.exp(-self.dimension * eta)
        if epsilon <= 0 or delta <= 0:
            raise InvalidParameter(
                f"epsilon={self.epsilon!r}, delta={self.delta!r}: below the resolution of the grid"
            )
        return max(
            rough, analytic_sigma(sensitivity=self.steps_sensitivity, epsilon=epsilon, delta=delta)
        )

    def _log_weight(self, noise: Integers) -> Array:
        return np.asarray(-0.5 * np.square(self.norm.of(noise) / self.steps_scale))

    def draw(self, rows: int, *, sampler: Sampler) -> Integers:
        """Draw independent discrete Gaussian variables, shape (rows, dimension)."""
        return sampler.discrete_gaussian((rows, self.dimension), sigma=self.steps_scale)


def gaussian_delta(*, sensitivity: float, sigma: float, epsilon: float) -> float:
    """Return delta of the continuous Gaussian mechanism at ``epsilon``, for l2 sensitivity
    ``sensitivity``, to the nearest double.

    ``reticent.accounting.exact_gaussian.gaussian_delta`` is the same rounded up. Here
    ``analytic_sigma`` adds the margin.

    Example:
        >>> round(gaussian_delta(sensitivity=1.0, sigma=1.0, epsilon=1.0), 6)
        0.126937

    Utility:
        Exact for continuous noise. No smaller delta holds.

    Runtime:
        Two evaluations of the normal distribution, 2 microseconds.

    References:
        - Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy:
          analytical calibration and optimal denoising", arXiv:1805.06530, theorem 8.

    See Also:
        reticent.mechanisms.analytic_sigma: the inverse, with a margin.
        reticent.mechanisms.GaussianMechanism: the mechanism.
    """
    half, slope = sensitivity / (2.0 * sigma), epsilon * sigma / sensitivity
    kept, lost = float(log_ndtr(half - slope)), epsilon + float(log_ndtr(-half - slope))
    return -math.exp(kept) * math.expm1(min(lost - kept, 0.0))


def analytic_sigma(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the smallest sigma of a continuous Gaussian mechanism that is (epsilon,
    delta)-private, enlarged by 1e-7 of itself.

    Args:
        sensitivity: l2 distance of two neighbours' values, above 0.
        epsilon: above 0.
        delta: in (0, 1).

    Raises:
        InvalidParameter: an argument out of its range.

    Example:
        >>> round(analytic_sigma(sensitivity=1.0, epsilon=1.0, delta=1e-5), 3)
        3.731

    Utility:
        Within 1e-7 of the smallest sigma there is. The textbook rule sqrt(2 ln(1.25 / delta)) /
        epsilon gives 4.84 in the example, 30 % more noise, and proves nothing for epsilon above 1.

    Runtime:
        A root of one monotone function, 30 microseconds.

    References:
        - Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy:
          analytical calibration and optimal denoising", arXiv:1805.06530, theorem 8.
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, appendix A (the textbook rule).

    See Also:
        reticent.mechanisms.gaussian_delta: the inverse.
        reticent.accounting.noise_multiplier: the same for many answers, any event.
    """
    positive(sensitivity, name="sensitivity")
    positive(epsilon, name="epsilon")
    probability(delta, name="delta", allow_zero=False)

    def excess(log_sigma: float) -> float:
        achieved = gaussian_delta(sensitivity=1.0, sigma=math.exp(log_sigma), epsilon=epsilon)
        return (math.log(achieved) if achieved > 0 else -math.inf) - math.log(delta)

    low, high = -1.0, 1.0
    while excess(low) <= 0:
        low -= 2.0
    while excess(high) >= 0:
        high += 2.0
    while excess(high) == -math.inf:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) >= 0 else (low, middle)
    from scipy.optimize import brentq

    return sensitivity * math.exp(brentq(excess, low, high, xtol=1e-12, rtol=1e-12)) * _SAFETY
