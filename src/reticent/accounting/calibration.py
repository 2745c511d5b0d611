"""The least noise with which Q answers stay within a required total (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable

from reticent.accounting.accountants import Accountant, RdpAccountant
from reticent.accounting.composition import SMALLEST_DELTA, optimal_delta
from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count, positive, probability
from reticent.core.errors import CalibrationFailed

_STEPS = 200


def epsilon_per_answer(*, epsilon: float, delta: float, answers: int) -> float:
    """Return the largest pure epsilon per answer that keeps ``answers`` of them within a total of
    (``epsilon``, ``delta``).

    It inverts ``composition.smallest_epsilon``, to a relative 1e-13 from below.

    Args:
        epsilon: total epsilon, above 0.
        delta: total delta, in [0, 1). At 0 only basic composition is left.
        answers: number of answers, at least 1.

    Example:
        >>> round(epsilon_per_answer(epsilon=17.787128449701196, delta=1e-5, answers=1000), 6)
        0.1

    Utility:
        Within a relative 1e-13 of the largest epsilon there is.

    Runtime:
        The search for a root of ``smallest_epsilon``, 3 ms for 1,000 answers on one core
        (benchmarks/runtimes.py).

    References:
        - Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy",
          arXiv:1311.0776, theorem 3.3.
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, theorem 3.16 (basic composition).

    See Also:
        reticent.accounting.smallest_epsilon: the inverse.
        reticent.accounting.noise_multiplier: for answers that are not pure.
    """
    target, answers = positive(epsilon, name="epsilon"), count(answers, name="answers")
    delta = probability(delta, name="delta")
    if delta < SMALLEST_DELTA:
        each = target / answers
        return each if answers * each <= target else math.nextafter(each, 0.0)

    def fits(per_answer: float) -> bool:
        # Optimal composition is never above the others, so it alone decides.
        spent = optimal_delta(
            epsilon=per_answer, answers=answers, total_epsilon=target, answer_delta=0.0
        )
        return spent <= delta

    lower, upper = target / answers, target + 1.0
    while fits(upper):
        lower, upper = upper, 2 * upper
    for _ in range(_STEPS):
        middle = 0.5 * (lower + upper)
        if middle in (lower, upper) or upper - lower < 1e-13 * upper:
            break
        if fits(middle):
            lower = middle
        else:
            upper = middle
    return lower


def noise_multiplier(
    make_event: Callable[[float], PrivacyEvent],
    *,
    epsilon: float,
    delta: float,
    answers: int,
    accountant: Callable[[], Accountant] | None = None,
    tolerance: float = 1e-7,
) -> float:
    """Return the smallest noise multiplier that keeps ``answers`` answers of ``make_event`` within
    (``epsilon``, ``delta``).

    Args:
        make_event: function from a noise multiplier to the event of one answer. The event's cost
            must not grow with the multiplier.
        epsilon: total epsilon, above 0.
        delta: total delta, in (0, 1) for Gaussian noise.
        answers: number of answers, at least 1.
        accountant: function that makes an empty accountant of the events' adjacency, or None for
            Rényi accounting.
        tolerance: largest distance of the total below ``epsilon``, above 0.

    Returns:
        A multiplier whose recomputed total lies in [epsilon - tolerance, epsilon], or the smallest
        one tried where epsilon is never reached.

    Raises:
        CalibrationFailed: no multiplier up to 1e9 is enough (for instance Rényi accounting asked
            for delta = 0).

    Example:
        >>> from reticent.accounting import GaussianCost
        >>> from reticent.core import AddRemove, Guarantee
        >>> def gaussian(multiplier):
        ...     return PrivacyEvent(
        ...         "gaussian", Guarantee(1.0, 1e-5, AddRemove()), GaussianCost(multiplier)
        ...     )
        >>> round(noise_multiplier(gaussian, epsilon=2.165715659029443, delta=1e-5, answers=100), 4)
        20.0

    Utility:
        Within ``tolerance`` of the total that was asked for.

    Runtime:
        Some tens of totals by the accountant.

    References:
        - Mironov (2017), "Rényi differential privacy", arXiv:1702.07476 (the default accounting).
        - Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy:
          analytical calibration and optimal denoising", arXiv:1805.06530 (calibration instead of
          closed formulas).

    See Also:
        reticent.accounting.epsilon_per_answer: pure answers.
        reticent.mechanisms.analytic_sigma: one Gaussian answer, exactly.
    """
    target, answers = positive(epsilon, name="epsilon"), count(answers, name="answers")
    delta = probability(delta, name="delta")
    tolerance = positive(tolerance, name="tolerance")
    adjacency = make_event(1.0).guarantee.adjacency

    def total(multiplier: float) -> float:
        fresh = RdpAccountant(adjacency) if accountant is None else accountant()
        return fresh.compose(make_event(multiplier), answers).epsilon(delta=delta)

    lower, upper = 1e-3, 1.0
    while (spent := total(upper)) > target:
        lower, upper = upper, 4 * upper
        if upper > 1e9:
            raise CalibrationFailed(
                f"no noise multiplier up to 1e9 brings {answers} answers to "
                f"epsilon={target:g}, delta={delta:g}"
            )
    for _ in range(_STEPS):
        if spent >= target - tolerance:
            break
        middle = math.sqrt(lower * upper)
        if middle in (lower, upper):
            break
        tried = total(middle)
        if tried <= target:
            upper, spent = middle, tried
        else:
            lower = middle
    return upper
