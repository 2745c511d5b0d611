"""Rényi divergences that hold up to a total-variation distance. No function hands out the
divergences without that distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent.accounting.conversion import epsilon_of_rdp
from reticent.core.arrays import Array
from reticent.core.checks import count, probability
from reticent.core.errors import InvalidParameter

_HALVINGS = 60
_LARGEST_EXPONENT = 700.0
"""A larger exponent overflows exp."""


@dataclass(frozen=True, eq=False)
class ApproximateRdp:
    """Rényi divergences of a release, up to a slack.

    **Guarantee.** At both of any two neighbours the release's distribution is within total
    variation ``slack`` of another one, and the divergences of those two are at most
    ``divergences``, in both directions. **The divergences alone bound nothing**: the release's own
    may be larger, or infinite. So ``epsilon`` takes the slack off delta, and sums and multiples add
    up the slacks.

    Attributes:
        orders: Rényi orders, each above 1.
        divergences: shape (k,), one for each order, read-only.
        slack: total variation, at least 0.

    Raises:
        InvalidParameter: orders, divergences or slack out of their range.

    Example:
        >>> label = ApproximateRdp((2, 8, 32), np.array([0.01, 0.04, 0.16]), slack=1e-12)
        >>> bits = ApproximateRdp((2, 8, 32), np.array([0.001, 0.004, 0.016]), slack=0.0)
        >>> total = 10 * label + 100 * bits
        >>> total.slack
        1e-11
        >>> round(total.epsilon(delta=1e-5), 3)
        2.014

    References:
        - Bun and Steinke (2016), "Concentrated differential privacy: simplifications, extensions,
          and lower bounds", arXiv:1605.02065, section 8 (approximate concentrated differential
          privacy).
        - Mironov (2017), "Rényi differential privacy", arXiv:1702.07476 (the divergences).
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, proposition 12 (conversion).

    See Also:
        reticent.accounting.epsilon_of_rdp: the conversion without slack.
        reticent.accounting.noisy_argmax_rdp: a cost with a slack.
    """

    orders: tuple[float, ...]
    divergences: Array
    slack: float

    def __post_init__(self) -> None:
        divergences = np.array(self.divergences, dtype=np.float64)
        if not self.orders or divergences.shape != (len(self.orders),):
            raise InvalidParameter(
                f"divergences: expected one for each of {len(self.orders)} orders, got "
                f"shape={divergences.shape}"
            )
        if not all(order > 1 for order in self.orders):
            raise InvalidParameter(f"orders={list(self.orders)}: expected numbers above 1")
        if not np.all(divergences >= 0):
            raise InvalidParameter("divergences: expected numbers of at least 0")
        if not self.slack >= 0:
            raise InvalidParameter(f"slack={self.slack!r}: expected a number of at least 0")
        divergences.setflags(write=False)
        object.__setattr__(self, "divergences", divergences)

    def __add__(self, other: ApproximateRdp) -> ApproximateRdp:
        """Return the cost of both releases, where the second may be chosen from the first's
        answer.
        """
        if not isinstance(other, ApproximateRdp):
            return NotImplemented
        if other.orders != self.orders:
            raise InvalidParameter("orders: expected the same for both summands")
        return ApproximateRdp(
            self.orders, self.divergences + other.divergences, self.slack + other.slack
        )

    def __rmul__(self, times: int) -> ApproximateRdp:
        """Return the cost of ``times`` such releases."""
        times = count(times, name="times", minimum=0)
        return ApproximateRdp(self.orders, times * self.divergences, times * self.slack)

    def spare(self, *, epsilon: float, delta: float) -> float:
        """Return the part of ``delta`` that the slack leaves to the divergences at ``epsilon``. It
        is not positive where nothing is left.

        If P is within slack of P', Q of Q', and P'(S) <= exp(epsilon) Q'(S) + d, then P(S) <=
        exp(epsilon) Q(S) + d + (1 + exp(epsilon)) slack.
        """
        return (
            delta - self.slack * (1.0 + math.exp(epsilon))
            if epsilon <= _LARGEST_EXPONENT or self.slack == 0
            else -math.inf
        )

    def epsilon(self, *, delta: float) -> float:
        """Return the smallest epsilon at ``delta`` less the slack, infinite where nothing is left.

        Raises:
            InvalidParameter: ``delta`` outside (0, 1).

        Reference: Canonne, Kamath and Steinke 2020, Proposition 12, for the divergences.
        """
        delta = probability(delta, name="delta", allow_zero=False)
        lower = self._without_slack(delta)
        if self.slack == 0 or math.isinf(lower):
            return lower
        # A larger epsilon leaves less of delta, and less of delta needs a larger epsilon. The
        # search runs between the least epsilon of the divergences and the one that uses up delta.
        # There the claim "epsilon is enough" turns true at most once near the lower end.
        step = 1e-9 * max(lower, 1e-3)
        while not self._enough(lower + step, delta):
            step *= 2
            if self.spare(epsilon=lower + step, delta=delta) <= 0:
                return math.inf
        failing, enough = lower + 0.5 * step, lower + step
        for _ in range(_HALVINGS):
            middle = 0.5 * (failing + enough)
            failing, enough = (failing, middle) if self._enough(middle, delta) else (middle, enough)
        return enough

    def _enough(self, epsilon: float, delta: float) -> bool:
        spare = self.spare(epsilon=epsilon, delta=delta)
        return spare > 0 and self._without_slack(spare) <= epsilon

    def _without_slack(self, delta: float) -> float:
        return epsilon_of_rdp(self.orders, self.divergences, delta)[0]
