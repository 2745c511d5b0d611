"""A lower confidence bound on epsilon, from many runs of a mechanism on two neighbours.

If M is (epsilon, delta)-private, every event S has P(M(x) in S) <= e^epsilon P(M(x') in S) +
delta. So ln((P(M(x) in S) - delta) / P(M(x') in S)) is a lower bound on epsilon, and with exact
binomial limits in place of the two probabilities it becomes one that counting can establish. A
bound above the claim refutes the claim; a bound below it does not prove it, so an audit is only
worth what it catches: see the planted faults in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from reticent.audit.beliefs import linear_score
from reticent.core.arrays import Array
from reticent.core.checks import count, probability
from reticent.core.errors import InvalidInput

_CANDIDATES = 400
"""Thresholds tried on the selecting half, spread evenly over both samples' ranks."""

_TAIL_RANKS = 200
"""Further thresholds among the most extreme scores, where small epsilons of rare events show."""


_LEARNT = 0.3
"""Share of runs with a coin that scores and thresholds are chosen by."""

_LEAST_RUNS = 200
"""Fewer runs with a coin give no bound."""

_RANKS = np.geomspace(0.5, 0.001, 32)
"""Shares of the runs in which heads are guessed, and tails, among which one is chosen."""

_OF_THE_GUESSES = 0.1
"""Share of the chance of error that goes to how often a guess is made; none where delta is 0."""


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes:
        epsilon_lower: the mechanism's epsilon at ``delta`` is at least this, with probability
            ``confidence``; at least 0.
        delta: the delta that was granted.
        confidence: probability, over the runs, that the statement holds.
        runs: runs on each of the two neighbours, or on both where a coin chose.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    runs: int

    def refutes(self, epsilon: float) -> bool:
        """Whether a claim of ``epsilon`` at ``delta`` cannot stand."""
        return self.epsilon_lower > epsilon


def epsilon_lower_bound(
    first: npt.ArrayLike, second: npt.ArrayLike, *, delta: float, confidence: float
) -> AuditResult:
    """Lower confidence bound on epsilon from scores of runs on two neighbours.

    A score is any number computed from one answer; large should mean "more likely from the first".
    The best score is the log-likelihood ratio. Events are "score at least t" (for the first) and
    "score at most t" (for the second). The first half of the runs selects one threshold in each
    direction, the second half confirms it with exact limits, so selecting costs nothing in
    confidence; what is left of 1 - confidence is shared by the four binomial limits.

    Args:
        first: shape (n,), scores of independent runs on x; infinities are allowed, NaN is not.
        second: shape (n,), scores of independent runs on the neighbour x'.
        delta: in [0, 1), the delta granted to the mechanism.
        confidence: in (0, 1).

    Raises:
        InvalidInput: other shapes, fewer than 100 runs, or NaN.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> coin = rng.random((2, 20000))
        >>> result = epsilon_lower_bound(coin[0] < 0.75, coin[1] < 0.25, delta=0.0, confidence=0.95)
        >>> bool(1.0 < result.epsilon_lower < np.log(3))
        True

    References:
        - Jagielski, Ullman and Oprea (2020), "Auditing differentially private machine learning: how
          private is private SGD?", arXiv:2006.07709, algorithm 2.
        - Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in the
          case of the binomial", doi:10.1093/biomet/26.4.404, exact limits of a binomial proportion.

    See Also:
        reticent.audit.binomial_limits: the limits.
        reticent.audit.AuditCase: a mechanism and its worst pair.
    """
    probability(delta, name="delta")
    probability(confidence, name="confidence", allow_zero=False)
    scores = [np.asarray(values, dtype=np.float64) for values in (first, second)]
    if scores[0].ndim != 1 or scores[0].shape != scores[1].shape or len(scores[0]) < 100:
        raise InvalidInput(
            f"scores: expected two lists of equal length from 100 on, got {scores[0].shape} "
            f"and {scores[1].shape}"
        )
    if any(np.isnan(values).any() for values in scores):
        raise InvalidInput("scores: contain NaN")
    level = (1.0 - confidence) / 4.0
    half = len(scores[0]) // 2
    best = 0.0
    for own, other in ((scores[0], scores[1]), (-scores[1], -scores[0])):
        candidates = _thresholds(own[:half], other[:half])
        chosen = candidates[np.argmax(_bounds(own[:half], other[:half], candidates, delta, level))]
        best = max(
            best, float(_bounds(own[half:], other[half:], np.array([chosen]), delta, level)[0])
        )
    return AuditResult(best, delta, confidence, len(scores[0]))


def guessing_lower_bound(
    coins: npt.ArrayLike, outputs: npt.ArrayLike, *, delta: float, confidence: float
) -> AuditResult:
    """Lower confidence bound on epsilon from guesses of the coin that chose each run's neighbour.

    A score and two thresholds are chosen by the first three tenths of the runs: heads are guessed
    at a high score, tails at a low one, or one of them never. The rest confirms it.

    *Why.* For disjoint sets A, B of outputs, guess heads (D) in A and tails (D') in B. With a fair
    coin a guess is right with chance R = (P(A) + Q(B)) / 2 and wrong with W = (Q(A) + P(B)) / 2, so
    (epsilon, delta)-privacy makes R <= e^epsilon W + delta, or + delta / 2 where A or B is empty.
    Given how many of the runs had a guess, the right ones are binomial with chance R / (R + W).
    One exact limit of it is all that delta = 0 needs. Otherwise a second one, of R + W, says how
    many of the right guesses delta explains.

    Args:
        coins: shape (n,), bool; fair and independent, True where D was drawn from.
        outputs: shape (n,), scores that are large where D is likely, or (n, d), numbers of which a
            linear score is learnt; no NaN.
        delta: in [0, 1).
        confidence: in (0, 1).

    Raises:
        InvalidInput: other shapes, or fewer than 200 runs.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> coins = rng.random(20000) < 0.5
        >>> right = rng.random(20000) < 0.75
        >>> found = guessing_lower_bound(coins, coins == right, delta=0.0, confidence=0.95)
        >>> bool(1.05 < found.epsilon_lower < np.log(3))
        True

    References:
        - Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run",
          arXiv:2305.08846, guesses of coins; here each coin has a run of its own.

    See Also:
        reticent.audit.epsilon_lower_bound: from equally many runs on either neighbour.
    """
    probability(delta, name="delta")
    probability(confidence, name="confidence", allow_zero=False)
    heads, values = np.asarray(coins), np.asarray(outputs, dtype=np.float64)
    if heads.dtype != np.bool_ or heads.ndim != 1 or len(values) != len(heads):
        raise InvalidInput(f"coins: expected shape ({len(values)},) of bool, got {heads.shape}")
    if len(heads) < _LEAST_RUNS or values.ndim not in (1, 2):
        raise InvalidInput(f"outputs: expected at least {_LEAST_RUNS} rows, got {values.shape}")
    learnt = round(_LEARNT * len(heads))
    if values.ndim == 2:
        values = linear_score(heads[:learnt], values[:learnt])(values)
    level, best, chosen = 1.0 - confidence, -1.0, (np.inf, -np.inf)
    for high, low in _guesses(values[:learnt]):
        found = _guessed(heads[:learnt], values[:learnt], high, low, delta, level)
        if found > best:
            best, chosen = found, (high, low)
    found = _guessed(heads[learnt:], values[learnt:], *chosen, delta, level)
    return AuditResult(found, delta, confidence, len(heads))


def binomial_limits(successes: npt.ArrayLike, trials: int, *, level: float) -> tuple[Array, Array]:
    """Exact lower and upper limits of a success probability, each wrong with probability at most
    ``level``.

    Args:
        successes: any shape, integers in 0 .. trials.
        trials: at least 1.
        level: in (0, 1).

    Example:
        >>> low, high = binomial_limits([0, 10], 10, level=0.05)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.0, 0.741], [0.259, 1.0])
    """
    k = np.asarray(successes, dtype=np.float64)
    n = float(count(trials, name="trials"))
    low = np.where(k > 0, betaincinv(np.maximum(k, 1.0), n - k + 1.0, level), 0.0)
    high = np.where(k < n, betaincinv(k + 1.0, np.maximum(n - k, 1.0), 1.0 - level), 1.0)
    return low, high


def _thresholds(own: Array, other: Array) -> Array:
    """Candidate thresholds from the selecting half: ranks of both samples, and the extremes."""
    pooled = np.sort(np.concatenate([own, other]))
    ranks = np.linspace(0, len(pooled) - 1, _CANDIDATES).astype(np.int64)
    return np.unique(np.concatenate([pooled[ranks], pooled[-_TAIL_RANKS:]]))


def _bounds(own: Array, other: Array, thresholds: Array, delta: float, level: float) -> Array:
    """For each event "score >= threshold": ln((lower limit under own - delta) / upper limit
    under other), at least 0.
    """
    trials = len(own)
    hits = [
        trials - np.searchsorted(np.sort(values), thresholds, side="left")
        for values in (own, other)
    ]
    low = binomial_limits(hits[0], trials, level=level)[0] - delta
    high = binomial_limits(hits[1], trials, level=level)[1]
    return np.log(np.maximum(low, high) / high)


def _guesses(scores: Array) -> list[tuple[float, float]]:
    """Thresholds above which heads, and below which tails are guessed, infinite for never."""
    high = np.quantile(scores, 1.0 - _RANKS, method="inverted_cdf")
    low = np.quantile(scores, _RANKS, method="inverted_cdf")
    pairs = [pair for pair in zip(high, low, strict=True) if pair[0] > pair[1]]
    return [*pairs, *((one, -np.inf) for one in high), *((np.inf, one) for one in low)]


def _guessed(
    heads: npt.NDArray[np.bool_], scores: Array, high: float, low: float, delta: float, level: float
) -> float:
    """The lower limit of epsilon, at least 0, from guesses by two thresholds."""
    above, below = scores >= high, scores <= low
    guesses = int(above.sum() + below.sum())
    if not guesses:
        return 0.0
    right = int((above & heads).sum() + (below & ~heads).sum())
    explained = 0.0
    if delta:
        sides = 2 if np.isfinite(high) and np.isfinite(low) else 1
        share = binomial_limits(guesses, len(heads), level=_OF_THE_GUESSES * level)[0]
        explained = 0.5 * sides * delta / float(share)
        level *= 1.0 - _OF_THE_GUESSES
    low_limit = float(binomial_limits(right, guesses, level=level)[0])
    return float(np.log(max((low_limit - explained) / (1.0 - low_limit), 1.0)))
