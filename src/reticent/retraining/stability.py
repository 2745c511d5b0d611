"""The number of records that would have to change before a label could: one model, and a vote of
many.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array
from reticent.core.errors import InvalidInput
from reticent.retraining.training import ParameterIntervals
from reticent.retraining.training_network import IntervalNetwork

_QUERIES_AT_ONCE = 1024


def stable_distances(intervals: ParameterIntervals, X: npt.ArrayLike) -> tuple[Integers, Integers]:
    """Return the trained network's label of each query, and its stable distance.

    The distance is the largest k for which every weight in T_k gives that label.

    **Guarantee.** (1) For data sets at distance 1 the stable distances of one query differ by at
    most 1. (2) If their labels differ, both stable distances are 0.

    *Why.* T_(k-1)(D') lies inside T_k(D), as computed. A query is checked against numbers that are
    computed by the same exact or monotone operations: smaller boxes have smaller ranges of logits.
    (1) Stable at k for D is stable at k - 1 for D'. The label is that of a weight inside T_0. (2)
    If D's label is stable at 1, it is the label of all of T_1(D), which holds D's and D''s trained
    weights. A query's answer does not depend on the other queries.

    Args:
        intervals: T_0 .. T_kmax.
        X: shape (n, features), finite, cut to the public input bound.

    Returns:
        Labels in 0 .. classes - 1 and distances in 0 .. k_max, each of shape (n,), int64. Private.

    Raises:
        InvalidInput: wrong shape, NaN or infinity. Values are never shown.

    Edge cases: a label that not even all of T_0 agrees on has distance 0.

    Utility:
        Never above the true number of changes that a label survives. How far below depends on the
        intervals. On scikit-learn's digits 77 % of labels survive one change and 32 % five. Of two
        overlapping Gaussians most survive hundreds (docs/certified.md, section 5).

    Runtime:
        O(d weights) a query whose distance is d - 1. 3 to 6 microseconds with 10 inputs and up to
        32 hidden units on one core (benchmarks/runtimes.py).

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, section 4.1, predictions that are stable under
          k changes.
        - Sosnin, Müller, Baader, Tsay and Wicker (2024), "Certified robustness to data poisoning in
          gradient-based training", arXiv:2406.05670.
        - The two properties and their proof: docs/certified.md.

    See Also:
        reticent.retraining.parameter_intervals: the intervals.
        reticent.retraining.vote_distances: of many members at once.
        reticent.mechanisms.StabilityResponse: what distances are for.
    """
    points = finite_array(
        X, name="X", ndim=2, columns=intervals.settings.features, allow_empty=True
    )
    labels, distances = np.zeros(len(points), np.int64), np.zeros(len(points), np.int64)
    middle = intervals.middle
    trained = IntervalNetwork(intervals.grids, middle, middle)
    networks = [intervals.network(k) for k in range(intervals.k_max + 1)]
    for start in range(0, len(points), _QUERIES_AT_ONCE):
        block = slice(start, start + _QUERIES_AT_ONCE)
        inputs = intervals.grids.inputs(points[block])
        labels[block] = _labels(trained.logits(inputs), intervals.settings.classes)
        left = np.arange(inputs.shape[1])
        for k, network in enumerate(networks):
            agreed = _agreed(network.logits(inputs[:, left]), labels[block][left])
            left = left[agreed]
            if not len(left):
                break
            distances[start + left] = k
    return labels, distances


def vote_distances(
    labels: npt.ArrayLike, distances: npt.ArrayLike, *, classes: int
) -> tuple[Integers, Integers]:
    """Return the label that most members vote for, and its distance.

    The distance is one less than the fewest records whose change could alter the label. A member's
    vote costs its stable distance plus 1 to change. The cheapest set of changes that lets another
    label win is found exactly. Ties go to the smaller label.

    **Guarantee.** If each record belongs to one member, and members' labels and distances have
    properties (1) and (2) of ``stable_distances``, so have the vote's.

    *Why.* Let cost_i(v) be 0 if member i votes v and its distance plus 1 otherwise, and C the least
    sum of costs over all votes with another winner. One changed record changes one member. With the
    label kept its costs move by at most 1. With another label both its distances are 0, and each
    cost_i(v) is 0 or 1 on either side. So C moves by at most 1 while the winner stays. If the
    winner changes, the neighbour's votes are such a set and cost 1, so C = 1 on both sides and C -
    1 = 0.

    *Differs from the paper.* Theorem 5.3 sums the smallest distances over *all* members. That is a
    valid bound and moves by any amount: a member that votes with the losers at distance 0 counts as
    a vote that is cheap to flip, until it votes with the winners. With more than two labels,
    members that vote for a third label can join the runner-up, and are counted.

    Args:
        labels: shape (members, n), integers in 0 .. classes - 1.
        distances: integers of at least 0, of the same shape.
        classes: number of labels, at least 2.

    Returns:
        Labels and distances of the vote, each of shape (n,), int64. Private.

    Raises:
        InvalidInput: shapes that do not fit, or labels and distances out of range.

    Example:
        >>> vote_distances([[1, 1], [1, 1], [0, 1]], [[4, 2], [9, 7], [0, 5]], classes=2)
        (array([1, 1]), array([4, 8]))

    Utility:
        The least cost, found exactly and not bounded. An ensemble of m members with distance k each
        that agree gives up to (m / 2)(k + 1).

    Runtime:
        O(m log m) a query for m members and two labels, O(classes m log m) for more. 3 and 13
        microseconds for 50 members and 2 and 10 labels on one core (benchmarks/runtimes.py).

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, theorem 5.3.
        - Levine and Feizi (2021), "Deep partition aggregation: provable defenses against general
          poisoning attacks", arXiv:2006.14768, votes of models on disjoint parts.

    See Also:
        reticent.published.published_vote_distances: theorem 5.3 as printed.
        reticent.retraining.stable_distances: of one member.
        reticent.CertifiedEnsemble: the estimator.
    """
    votes, costs = np.asarray(labels), np.asarray(distances)
    if (
        votes.ndim != 2
        or votes.shape != costs.shape
        or not len(votes)
        or {votes.dtype.kind, costs.dtype.kind} - set("iu")
    ):
        raise InvalidInput(
            "labels, distances: expected integers of one shape (members, n), got "
            f"{votes.shape}, {costs.shape}"
        )
    if votes.size and (
        votes.min() < 0
        or votes.max() >= count(classes, name="classes", minimum=2)
        or costs.min() < 0
    ):
        raise InvalidInput(
            f"labels, distances: expected labels from 0 to {classes - 1} and distances of at "
            "least 0"
        )
    members, queries = votes.shape
    counts = np.stack([(votes == label).sum(axis=0) for label in range(classes)])
    winner = counts.argmax(axis=0)
    never = float(costs.max(initial=0) + 1) * members + 1.0  # above any sum of costs
    prices = costs + 1.0
    of_winner = _cheapest_sums(np.where(votes == winner, prices, never))
    best = np.full(queries, never)
    columns = np.arange(queries)
    for rival in range(classes):
        others = _cheapest_sums(np.where((votes == winner) | (votes == rival), never, prices))
        # A vote moved from the winner closes the gap by 2, one from a third label by 1.
        gap = counts[winner, columns] - counts[rival] + (rival > winner)
        for moved in range(members + 1):
            joined = np.clip(gap - 2 * moved, 0, members)
            price = of_winner[moved] + others[joined, columns]
            best = np.where(rival == winner, best, np.minimum(best, price))
    return winner.astype(np.int64), (best - 1.0).astype(np.int64)


def _cheapest_sums(prices: Array) -> Array:
    """Return sums of the 0, 1, ..., members smallest prices of every column: (members + 1, n)."""
    return np.concatenate(
        [np.zeros((1, prices.shape[1])), np.cumsum(np.sort(prices, axis=0), axis=0)]
    )


def _labels(logits: Array, classes: int) -> Integers:
    """Return the label of one weight vector, from the ends of its logits."""
    if classes == 2:
        return np.asarray(logits[0] + logits[1] > 0, dtype=np.int64)
    return np.asarray(
        (logits - np.swapaxes(logits, 0, 1) >= 0).all(axis=1).argmax(axis=0), dtype=np.int64
    )


def _agreed(logits: Array, labels: Integers) -> npt.NDArray[np.bool_]:
    """Return whether all weights of a box give ``labels``, strictly."""
    if len(logits) == 2 and logits.ndim == 2:
        return np.asarray(np.where(labels == 1, logits[0] > 0, logits[1] < 0))
    of_label = logits[labels, :, np.arange(logits.shape[2])]
    return np.asarray((of_label > 0).sum(axis=1) == logits.shape[0] - 1)
