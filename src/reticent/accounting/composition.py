"""The total of a series of (epsilon, delta) answers by basic, advanced and optimal composition."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidParameter

_BISECTIONS = 200
MOST_ANSWERS = 2**24
"""More answers need tables of a gigabyte, and only basic composition is used."""

SMALLEST_DELTA = 1e-280
"""Below it only basic composition is used, since smaller probabilities leave the range of
doubles.
"""


@dataclass(frozen=True)
class Composition:
    """The total of a series of answers, and the theorem that gave the smallest one.

    Attributes:
        epsilon: total epsilon, at the ``delta`` that was asked for.
        delta: total delta.
        winner: "basic" or "optimal".
        candidates: epsilon by each of them, infinite where one cannot reach ``delta``.
    """

    epsilon: float
    delta: float
    winner: str
    candidates: dict[str, float]


def optimal_delta(
    *, epsilon: float, answers: int, total_epsilon: float, answer_delta: float
) -> float:
    """Return the smallest delta at which ``answers`` answers of (``epsilon``, ``answer_delta``) are
    (``total_epsilon``, delta)-private.

    It holds for adaptive series too. No smaller number holds for every series of such answers,
    since randomised response attains it.

    Args:
        epsilon: epsilon of one answer, above 0.
        answers: number of answers, at least 1. More than 2**24 have the delta of basic composition:
            1 below the sum of epsilons.
        total_epsilon: total epsilon, at least 0.
        answer_delta: delta of one answer, in [0, 1).

    Returns:
        The closed form, rounded up by a relative 1e-12 + 1e-14 ``answers``. A number below 1e-300
        may come out as 0.

    Edge cases: with no spare answers ``answers=1`` gives ``answer_delta`` at
    ``total_epsilon=epsilon``.

    Utility:
        The least delta that holds, rounded up.

    Runtime:
        O(answers), 0.06 ms for 1,000 on one core (benchmarks/runtimes.py).

    References:
        - Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy",
          arXiv:1311.0776, theorem 3.3 (here for any total epsilon instead of their grid).

    See Also:
        reticent.accounting.optimal_epsilon: the inverse.
        reticent.accounting.PldAccountant: answers that differ.
    """
    epsilon, answers = positive(epsilon, name="epsilon"), count(answers, name="answers")
    answer_delta = probability(answer_delta, name="answer_delta")
    if not total_epsilon >= 0:
        raise InvalidParameter(f"total_epsilon={total_epsilon!r}: expected a number of at least 0")
    return with_failures(
        _pure_delta(epsilon, answers)(total_epsilon), answers * math.log1p(-answer_delta)
    )


def optimal_epsilon(*, epsilon: float, answers: int, delta: float, answer_delta: float) -> float:
    """Return the smallest total epsilon at ``delta``, the inverse of ``optimal_delta``, rounded up.

    Returns:
        Total epsilon, or infinity where the answers' own delta already exceeds ``delta``. For delta
        below 1e-280 it is the sum of epsilons, since smaller probabilities leave the range of
        doubles. So it is for more than 2**24 answers.

    Example:
        >>> round(optimal_epsilon(epsilon=0.1, answers=1000, delta=1e-5, answer_delta=0.0), 3)
        17.787

    Utility:
        The least epsilon that holds, rounded up: 17.79 where the closed form of advanced
        composition (Dwork and Roth, theorem 3.20) gives 20.17 and the sum 100.

    Runtime:
        Some tens of evaluations of O(answers), 0.5 ms for 1,000 on one core
        (benchmarks/runtimes.py).

    References:
        - Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy",
          arXiv:1311.0776, theorem 3.3.

    See Also:
        reticent.accounting.optimal_delta: the inverse.
        reticent.accounting.PldAccountant: answers that differ.
    """
    epsilon, answers = positive(epsilon, name="epsilon"), count(answers, name="answers")
    delta = probability(delta, name="delta")
    log_kept = answers * math.log1p(-probability(answer_delta, name="answer_delta"))
    if delta < SMALLEST_DELTA:
        # A probability that a double rounds to 0 is not 0. At so small a delta only the sum holds.
        return answers * epsilon if with_failures(0.0, log_kept) <= delta else math.inf
    pure = _pure_delta(epsilon, answers)

    def excess(total: float) -> bool:
        return with_failures(pure(total), log_kept) > delta

    return smallest_without(excess, answers * epsilon)


def smallest_epsilon(
    *, epsilon: float, answers: int, delta: float, answer_delta: float
) -> Composition:
    """Return the smaller of basic and optimal composition of ``answers`` equal answers.

    Args:
        epsilon: epsilon of one answer, above 0.
        answers: number of answers, at least 1.
        delta: total delta, in [0, 1).
        answer_delta: delta of one answer, in [0, 1). The answers' share is set aside before the
            rest goes to the theorems.

    Raises:
        InvalidParameter: the answers' own delta adds up to more than ``delta`` under every theorem.

    Example:
        >>> total = smallest_epsilon(epsilon=0.1, answers=1000, delta=1e-5, answer_delta=0.0)
        >>> total.winner, round(total.epsilon, 3)
        ('optimal', 17.787)

    Utility:
        Never above the sum of epsilons, and the optimum at a delta above 0.

    Runtime:
        0.5 ms for 1,000 answers on one core (benchmarks/runtimes.py).

    References:
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, theorem 3.16.
        - Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy",
          arXiv:1311.0776, theorem 3.3.

    See Also:
        reticent.accounting.epsilon_per_answer: the inverse.
        reticent.accounting.PldAccountant: answers that differ.
        reticent.accounting.RdpAccountant: answers of known noise.
    """
    epsilon, answers = positive(epsilon, name="epsilon"), count(answers, name="answers")
    own = answers * probability(answer_delta, name="answer_delta")
    spare = probability(delta, name="delta") - own
    candidates = {
        "basic": answers * epsilon if spare >= 0 else math.inf,
        "optimal": optimal_epsilon(
            epsilon=epsilon, answers=answers, delta=delta, answer_delta=answer_delta
        ),
    }
    winner = min(candidates, key=lambda name: candidates[name])
    if math.isinf(candidates[winner]):
        raise InvalidParameter(
            f"delta={delta!r}: {answers} answers of delta {answer_delta:g} "
            f"already spend {own:g}; ask for a larger delta or fewer answers"
        )
    return Composition(candidates[winner], delta, winner, candidates)


def _pure_delta(epsilon: float, answers: int) -> Callable[[float], float]:
    """Return delta of ``answers`` pure answers as a function of total epsilon, rounded up. The
    binomial weights are computed once.
    """
    if answers > MOST_ANSWERS:
        return lambda total: float(total < answers * epsilon)
    lies = np.arange(answers + 1)
    losses = np.asarray((answers - 2.0 * lies) * epsilon, dtype=np.float64)
    # A lie has probability 1/(1 + e^epsilon). The logarithmic weights neither overflow nor cancel
    # at any number of answers.
    lie = 1.0 / (1.0 + math.exp(min(epsilon, 700.0)))
    weights = binomial_weights(answers, lie)

    # More than the errors of logarithms of binomial coefficients, which grow with the number of
    # answers.
    rounding = 1.0 + 1e-12 + 1e-14 * answers

    def delta(total: float) -> float:
        above = losses > total
        return rounding * float(np.sum(weights[above] * -np.expm1(total - losses[above])))

    return delta


def binomial_weights(answers: int, lie: float) -> Array:
    """Return the probabilities of 0, 1, ..., ``answers`` lies, shape (answers + 1,), where each
    answer is a lie with probability ``lie``.

    Example:
        >>> binomial_weights(2, 0.25).round(4).tolist()
        [0.5625, 0.375, 0.0625]
    """
    # The formula of scipy.stats, which takes a second to import.
    lies = np.arange(answers + 1, dtype=np.float64)
    log_ways = (
        special.gammaln(answers + 1)
        - special.gammaln(lies + 1)
        - special.gammaln(answers - lies + 1)
    )
    return np.asarray(
        np.exp(log_ways + special.xlogy(lies, lie) + special.xlog1py(answers - lies, -lie)),
        dtype=np.float64,
    )


def with_failures(pure: float, log_kept: float) -> float:
    """Return the total delta where answers fail with probability 1 - exp(``log_kept``) and cost
    ``pure`` otherwise.
    """
    return -math.expm1(log_kept) + math.exp(log_kept) * pure


def smallest_without(excess: Callable[[float], bool], upper: float) -> float:
    """Return the smallest number in [0, ``upper``] without ``excess``, from above. It is infinite
    if ``upper`` itself has excess.
    """
    if excess(upper):
        return math.inf
    if not excess(0.0):
        return 0.0
    lower = 0.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (lower + upper)
        if middle in (lower, upper):
            break
        if excess(middle):
            lower = middle
        else:
            upper = middle
    return upper
