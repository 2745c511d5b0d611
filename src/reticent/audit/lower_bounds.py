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

from reticent.core.arrays import Array
from reticent.core.checks import count, probability
from reticent.core.errors import InvalidInput

_CANDIDATES = 400
"""Thresholds tried on the selecting half, spread evenly over both samples' ranks."""

_TAIL_RANKS = 200
"""Further thresholds among the most extreme scores, where small epsilons of rare events show."""


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
