"""The best channel for several targets between any two of a few dozen nodes, as a linear program
over staircase columns, priced by its own duals.

A column holds the chance of one answer at every node. The worth of a column to a target is convex
and homogeneous, so the best private channel is a mixture of staircases: each column is 1 on a set
of nodes and e^-epsilon off it. This also holds under floors, and under a cap that is linear in the
mixture. The program starts from some sets. Its duals say which further sets would raise the
objective, and these are found by turns: decode (the tangent of the worth), threshold, and single
flips at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from reticent.core.arrays import Array, Booleans, Integers
from reticent.core.errors import CalibrationFailed, InvalidInput

LARGEST_EPSILON = 22.0
"""Shares are multiples of 2^-32, which is e^-22.18."""

_TINY = np.finfo(np.float64).tiny
_USED = 1e-11
_GAIN = 1e-6
_COLUMNS = 400  # that the program goes on with, those of the best reduced costs
_RANDOM = 60
_ADDED = 400  # columns in a round, of all that there are
_TURNS = 8
_ROUNDS = 80
_FLIPPED = 4
_DEEP = 24
_TINY_GAIN = 1e-9
_CLOSE = 2e-5  # of the worth: no further columns are made
_PATIENCE = 6  # rounds in which the worth has to rise by _SLOW of itself
_SLOW = 1e-3
_NEAR = 1e-3  # of all mass that a ball's first guess leaves to chance


class Target(Protocol):
    """The worth of columns to one target, convex and homogeneous of degree 1 in a column."""

    def value(self, columns: Array) -> Array:
        """Return the worth of each of ``columns``, shape (m, nodes), as shape (m,)."""

    def gradient(self, columns: Array) -> Array:
        """Return a subgradient at each of ``columns``, shape (m, nodes)."""


@dataclass(frozen=True, eq=False)
class Information:
    """The information that an answer gives about a label, in nats.

    Attributes:
        joint: node and label together, shape (nodes, labels), above 0, with sum 1.
    """

    joint: Array

    def value(self, columns: Array) -> Array:
        """Return the nats that each column adds."""
        return np.asarray(((columns @ self.joint) * self._logs(columns)).sum(axis=1))

    def gradient(self, columns: Array) -> Array:
        """Return the log odds of labels against their shares, in the mean at each node."""
        return np.asarray(self._logs(columns) @ self.joint.T)

    def _logs(self, columns: Array) -> Array:
        together = np.maximum(columns @ self.joint, _TINY)
        share = together.sum(axis=1, keepdims=True) * self.joint.sum(axis=0)
        return np.asarray(np.log(together / share))


@dataclass(frozen=True, eq=False)
class Top:
    """The share of right guesses, where ``k`` are allowed: accuracy for one, recall among k for
    more.

    Attributes:
        joint: shape (nodes, labels), node and label together, each item's mass divided by k where
            an input has k right ones.
        k: the number of guesses that an answer is given.
    """

    joint: Array
    k: int = 1

    def value(self, columns: Array) -> Array:
        """Return the k largest masses under each column."""
        found = columns @ self.joint
        found.partition(found.shape[1] - self.k, axis=1)
        return np.asarray(found[:, -self.k :].sum(axis=1))

    def gradient(self, columns: Array) -> Array:
        """Return the masses of the k labels that are named."""
        found = columns @ self.joint
        named = np.argpartition(found, found.shape[1] - self.k, axis=1)[:, -self.k :]
        return np.asarray(self.joint.T[named].sum(axis=1))


@dataclass(frozen=True, eq=False)
class Mixture:
    """A weighted sum of targets, which is a target itself.

    Attributes:
        parts: the targets, at least one.
        weights: the weight of each part, at least 0.
    """

    parts: tuple[Target, ...]
    weights: tuple[float, ...]

    def value(self, columns: Array) -> Array:
        """Return the weighted sum."""
        found = [w * part.value(columns) for w, part in zip(self.weights, self.parts, strict=True)]
        return np.asarray(np.sum(found, axis=0))

    def gradient(self, columns: Array) -> Array:
        """Return the weighted sum of subgradients."""
        found = [
            w * part.gradient(columns) for w, part in zip(self.weights, self.parts, strict=True)
        ]
        return np.asarray(np.sum(found, axis=0))


@dataclass(frozen=True, eq=False)
class Variance:
    """The share of a vector's variance that the mean given the answer explains.

    Attributes:
        moments: the mass of a node times its centred mean, shape (nodes, dimension), scaled so that
            the total variance is 1.
        masses: shape (nodes,), above 0.
    """

    moments: Array
    masses: Array

    def value(self, columns: Array) -> Array:
        """Return the squared length of the mean, times the column's mass."""
        return np.asarray(((columns @ self.moments) ** 2).sum(axis=1) / (columns @ self.masses))

    def gradient(self, columns: Array) -> Array:
        """Return the gradient of a square over a linear function."""
        means = (columns @ self.moments) / (columns @ self.masses)[:, None]
        lengths = (means**2).sum(axis=1)
        return np.asarray(2.0 * means @ self.moments.T - lengths[:, None] * self.masses)


@dataclass(frozen=True, eq=False)
class Crowd:
    """A cap on how often the best guess names the right one of ``size`` inputs that were drawn at
    random.

    A column of weight theta on a set of mass p adds theta [1 - (1 - e^-epsilon)(1 - p)^N]/N.

    Attributes:
        masses: shape (nodes,), shares of inputs, with sum 1.
        most: the largest chance that is allowed, at least 1/size, or None for any.
        size: N, at least 2.
    """

    masses: Array
    most: float | None = None
    size: int = 64

    def guesses(self, sets: Booleans, low: float) -> Array:
        """Return the amount that each column of weight 1 adds, shape (m,)."""
        outside = np.maximum(1.0 - sets @ self.masses, 0.0)
        return np.asarray((1.0 - (1.0 - low) * outside**self.size) / self.size)

    def slope(self, sets: Booleans, low: float) -> Array:
        """Return the derivative by each entry, shape (m, nodes)."""
        outside = np.maximum(1.0 - sets @ self.masses, 0.0)
        return np.asarray(outside[:, None] ** (self.size - 1) * self.masses)

    def chance(self, table: Array) -> float:
        """Return the chance for a whole table, shape (nodes, answers), which may be no mixture of
        staircases any more.

        It is the mean over crowds of the largest entry of each column.
        """
        total = 0.0
        for column in table.T:
            order = np.argsort(column)
            below = np.cumsum(self.masses[order]) ** self.size
            total += float(column[order] @ np.diff(below, prepend=0.0))
        return total / self.size


@dataclass(frozen=True, eq=False)
class BestChannel:
    """The result of ``best_channel``.

    Attributes:
        table: shape (nodes, answers), rows sum to 1.
        worth: the objective: a weighted sum, or the least share.
        gap: the amount that the best column found by pricing would still gain, per unit of its
            weight.
    """

    table: Array
    worth: float
    gap: float


@dataclass(frozen=True, eq=False)
class _Solved:
    weights: Array  # of columns
    node_prices: Array
    target_prices: Array
    crowd_price: float
    worth: float

    def midway(self, other: _Solved) -> _Solved:
        """Return prices between these and others: those of one program leap about."""
        return replace(
            self,
            node_prices=(self.node_prices + other.node_prices) / 2,
            target_prices=(self.target_prices + other.target_prices) / 2,
            crowd_price=(self.crowd_price + other.crowd_price) / 2,
        )


def best_channel(
    targets: Sequence[Target],
    *,
    nodes: int,
    epsilon: float,
    weights: Sequence[float] | None = None,
    whole: Sequence[float] | None = None,
    crowd: Crowd | None = None,
    starts: Sequence[Array] = (),
    seed: int = 0,
) -> BestChannel:
    """Return the best private channel between any two of ``nodes``, for one of two objectives.

    It is never worth less than a start whose columns are staircases. A start of other columns is
    taken as the sets where its columns are above the middle.

    Args:
        targets: at least one.
        nodes: the number of nodes, at least 2.
        epsilon: above 0.
        weights: the weights of the targets' worths in a sum, at least 0, or None for ``whole``.
        whole: the worth that each target could have alone, above 0. The objective is then the
            largest s such that every target keeps s of its own.
        crowd: a cap on the attacker's chance, or None.
        starts: tables, shape (nodes, answers), that the program starts from.
        seed: the seed of random sets.

    Raises:
        InvalidInput: both or neither of ``weights`` and ``whole`` are given, or one has another
            length.
        CalibrationFailed: the linear program did not finish.

    References:
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, theorems 2 and 4.
        - Gilmore and Gomory (1961), "A linear programming approach to the cutting-stock problem",
          doi:10.1287/opre.9.6.849, columns priced by duals.
        - Wentges (1997), "Weighted Dantzig-Wolfe decomposition for linear mixed-integer
          programming", doi:10.1016/S0969-6016(97)00001-4, means of duals.

    Example:
        >>> label = Top(np.eye(2) / 2)
        >>> found = best_channel([label], nodes=2, epsilon=1.0, weights=[1.0])
        >>> round(found.worth, 4)
        0.7311
    """
    given = weights if whole is None else whole
    if (weights is None) == (whole is None) or given is None or len(given) != len(targets):
        raise InvalidInput("best_channel: expected weights or whole, one number for each target")
    low, random = math.exp(-min(epsilon, LARGEST_EPSILON)), np.random.default_rng(seed)
    # every node alone, and one answer for all, which tells nothing and so meets every cap
    always = np.vstack([np.eye(nodes, dtype=bool), np.ones((1, nodes), dtype=bool)])
    pull = [1.0 / own for own in whole] if whole is not None else list(weights or ())
    first = [_balls(targets, pull, nodes), *[_raised(start, low) for start in starts]]
    nothing = np.empty((0, len(targets)))
    sets, worths = _grown(targets, always[:0], nothing, np.concatenate([always, *first]), low)
    solved, gap = _solved(worths, sets, low, weights, whole, crowd), math.inf
    reached, asked = [solved.worth], solved
    for _ in range(_ROUNDS):
        used = np.flatnonzero(solved.weights > _USED)
        new, gap = _priced(targets, asked, sets[used], low, crowd, random)
        if not len(new) or gap * solved.weights.sum() <= _CLOSE * abs(solved.worth):
            if asked is solved:
                break
            asked = solved  # nothing is to be had at the mean of prices
            continue
        if len(sets) > _COLUMNS:
            costs = _gains(worths, solved, sets, low, crowd)
            costs[: len(always)] = costs[used] = math.inf
            kept = np.argsort(-costs, kind="stable")[:_COLUMNS]
            sets, worths = sets[kept], worths[kept]
        sets, worths = _grown(targets, sets, worths, new, low)
        before, solved = asked, _solved(worths, sets, low, weights, whole, crowd)
        asked = solved.midway(before)
        reached.append(solved.worth)
        if len(reached) > _PATIENCE and (
            reached[-1] - reached[-1 - _PATIENCE] <= _SLOW * abs(reached[-1])
        ):
            break
    return BestChannel(_table(sets, solved.weights, low), solved.worth, max(gap, 0.0))


def best_alone(
    target: Target,
    *,
    nodes: int,
    epsilon: float,
    starts: Sequence[Array] = (),
    seed: int = 0,
) -> Array:
    """Return the best private table for one target, shape (nodes, answers).

    Where a label is one of two, a column is worth what two numbers say, its masses of either label.
    So every column is raised on nodes that are consecutive in the order of the label's share. One
    program over these columns is all, to which those that would gain are added.

    Args:
        target: the worth of columns.
        nodes: the number of nodes, at least 2.
        epsilon: above 0.
        starts: the tables that a program for other targets starts from, shape (nodes, answers).
        seed: the seed of random sets.
    """
    joint = label_joint(target)
    if joint is None or joint.shape[1] != 2:
        return best_channel(
            [target], nodes=nodes, epsilon=epsilon, weights=[1.0], starts=starts, seed=seed
        ).table
    order, places = np.argsort(joint[:, 1] / joint.sum(axis=1)), np.arange(nodes)
    first, last = np.triu_indices(nodes)
    sets = np.zeros((len(first), nodes), dtype=bool)
    sets[:, order] = (first[:, None] <= places) & (places <= last[:, None])
    low = math.exp(-min(epsilon, LARGEST_EPSILON))
    worths = _worths([target], np.where(sets, 1.0, low))
    chosen = (first == last) | (first == 0) | (last == nodes - 1)
    while True:
        solved = _solved(worths[chosen], sets[chosen], low, [1.0], None, None)
        gains = np.where(chosen, 0.0, _gains(worths, solved, sets, low, None))
        if gains.max() <= _TINY_GAIN:
            return _table(sets[chosen], solved.weights, low)
        chosen[np.argsort(-gains)[:_ADDED]] |= np.sort(-gains)[:_ADDED] < -_TINY_GAIN


def label_joint(target: Target) -> Array | None:
    """Node and label together, where a column's worth depends on its masses of labels alone."""
    if isinstance(target, Mixture):
        return label_joint(target.parts[0])
    if isinstance(target, Information) or (isinstance(target, Top) and target.k == 1):
        return target.joint
    return None


def _balls(targets: Sequence[Target], weights: Sequence[float], nodes: int) -> Booleans:
    """Return sets of the nodes that are nearest to each node, of every size.

    Nodes are near if a guess that is right at the one is worth much at the other.
    """
    alone = np.eye(nodes) + _NEAR / nodes
    slope = np.zeros((nodes, nodes))
    for target, weight in zip(targets, weights, strict=True):
        found = target.gradient(alone)
        slope += weight * found / np.maximum(np.abs(found).sum(axis=0), _TINY)
    places = np.argsort(np.argsort(-slope, axis=1), axis=1)
    return np.concatenate([places < size for size in range(1, nodes)])


def _raised(table: Array, low: float) -> Booleans:
    """Return the sets where the columns of a table are above the middle of a staircase's steps."""
    return np.asarray((table > table.max(axis=0) * (1.0 + low) / 2.0).T)


def _table(sets: Booleans, weights: Array, low: float) -> Array:
    """Return the table of the columns that are used, shape (nodes, answers), rows sum to 1."""
    used = np.flatnonzero(weights > _USED)
    table = np.where(sets[used], 1.0, low).T * weights[used]
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _grown(
    targets: Sequence[Target], sets: Booleans, worths: Array, new: Booleans, low: float
) -> tuple[Booleans, Array]:
    """Return sets and the worths of their columns, with those that are new after those that are
    known.
    """
    both = np.concatenate([sets, new])
    first = np.sort(np.unique(both, axis=0, return_index=True)[1])
    more = both[first[first >= len(sets)]]
    more = more[more.any(axis=1)]
    found = _worths(targets, np.where(more, 1.0, low))
    return np.concatenate([sets, more]), np.concatenate([worths, found])


def _worths(targets: Sequence[Target], columns: Array) -> Array:
    """Return the worth of each column to each target, shape (columns, targets)."""
    return np.stack([target.value(columns) for target in targets], axis=1)


def _solved(
    worths: Array,
    sets: Booleans,
    low: float,
    weights: Sequence[float] | None,
    whole: Sequence[float] | None,
    crowd: Crowd | None,
) -> _Solved:
    from scipy.optimize import linprog

    columns = np.where(sets, 1.0, low)
    capped = crowd is not None and crowd.most is not None
    rows, ends = [], []
    equal, costs = columns.T, -worths @ np.asarray(weights if weights is not None else whole)
    if whole is not None:  # one more variable: the least share
        rows = [np.append(-worth, own) for worth, own in zip(worths.T, whole, strict=True)]
        ends = [0.0] * len(rows)
        equal = np.column_stack([equal, np.zeros(len(equal))])
        costs = np.append(np.zeros(len(columns)), -1.0)
    if capped and crowd is not None:
        told = crowd.guesses(sets, low)
        rows.append(np.append(told, 0.0) if whole is not None else told)
        ends.append(float(crowd.most or 0.0))
    found = linprog(
        costs,
        A_eq=equal,
        b_eq=np.ones(equal.shape[0]),
        A_ub=np.array(rows) if rows else None,
        b_ub=ends or None,
        bounds=(0, None),
        method="highs-ds",
        options={"presolve": False},
    )
    if found.x is None or found.fun is None or not found.success:
        raise CalibrationFailed(
            f"the linear program over staircase channels has no solution (status={found.status}); "
            "raise the cap, or report the epsilon and number of nodes"
        )
    prices = -np.asarray(found.ineqlin.marginals)
    shared = worths.shape[1] if whole is not None else 0
    return _Solved(
        weights=found.x[: len(columns)],
        node_prices=-np.asarray(found.eqlin.marginals),
        target_prices=prices[:shared] if shared else np.asarray(weights, dtype=np.float64),
        crowd_price=float(prices[-1]) if capped else 0.0,
        worth=-float(found.fun),
    )


def _gains(
    worths: Array, solved: _Solved, sets: Booleans, low: float, crowd: Crowd | None
) -> Array:
    """Return the amount by which each column would raise the objective, per unit of its weight."""
    columns = np.where(sets, 1.0, low)
    found = worths @ solved.target_prices - columns @ solved.node_prices
    if solved.crowd_price and crowd is not None:
        found -= solved.crowd_price * crowd.guesses(sets, low)
    return np.asarray(found)


def _priced(
    targets: Sequence[Target],
    solved: _Solved,
    used: Booleans,
    low: float,
    crowd: Crowd | None,
    random: np.random.Generator,
) -> tuple[Booleans, float]:
    """Return sets whose columns would raise the objective, and by how much the best of them
    would.
    """
    nodes = used.shape[1]

    def gains(sets: Booleans) -> Array:
        worths = _worths(targets, np.where(sets, 1.0, low))
        return _gains(worths, solved, sets, low, crowd)

    def priced(sets: Booleans) -> tuple[Array, Booleans]:
        """Gains of columns, and the sets where their tangents rise.

        Worths are homogeneous: that of a column is its product with the tangent.
        """
        columns = np.where(sets, 1.0, low)
        slope = np.zeros(columns.shape) - solved.node_prices
        for target, price in zip(targets, solved.target_prices, strict=True):
            slope += price * target.gradient(columns)
        found = (slope * columns).sum(axis=1)
        if solved.crowd_price and crowd is not None:
            found -= solved.crowd_price * crowd.guesses(sets, low)
            slope -= solved.crowd_price * crowd.slope(sets, low)
        return found, np.asarray(slope > 0)

    flipped = used ^ (random.random(used.shape) < 2.0 / nodes)
    drawn = random.random((_RANDOM, nodes)) < random.random((_RANDOM, 1))
    best = np.concatenate([used, flipped, drawn])
    most, tried, moving = np.full(len(best), -math.inf), best.copy(), np.arange(len(best))
    for _ in range(_TURNS + 1):
        found, after = priced(tried[moving])
        rise = found > most[moving]
        best[moving[rise]], most[moving[rise]] = tried[moving[rise]], found[rise]
        moving, after = (kept[(after != tried[moving]).any(axis=1)] for kept in (moving, after))
        if not len(moving):
            break
        tried[moving] = after
    flips = np.eye(nodes, dtype=bool)
    for place in np.argsort(-most)[:_FLIPPED]:
        near = best[place] ^ flips
        found = gains(near)
        if found.max() > most[place]:
            best[place], most[place] = near[found.argmax()], found.max()
    if most.max() <= _GAIN:  # before giving up: two flips at once, as long as they gain
        first, second = np.triu_indices(nodes)
        flips = flips[first] | flips[second]
        _, places = np.unique(best, axis=0, return_index=True)
        for place in places[np.argsort(-most[places])][:_DEEP]:
            while (found := gains(near := best[place] ^ flips)).max() > most[place] + _TINY_GAIN:
                best[place], most[place] = near[found.argmax()], found.max()
            if most[place] > _GAIN:
                break
    proper = best.any(axis=1) & ~best.all(axis=1)
    return best[proper & (most > _GAIN)], float(most[proper].max(initial=0.0))


def cluster(
    shares: Sequence[Array], *, clusters: int, weights: Sequence[float] | None = None, seed: int
) -> tuple[Array, Integers]:
    """Return prototypes of clusters that lose least information, and each row's cluster.

    A row goes where the mean logarithm of the cluster's shares under the row's own is highest.
    Shares are the means of the rows. Half a row of the mean of all is added to each.

    Args:
        shares: a public model's shares for each target, shape (n, labels), rows sum to 1.
        clusters: the largest number of clusters, at least 2.
        weights: the weights of the targets. None for one over the entropy of each, so that a target
            of many labels does not take all clusters.
        seed: the seed of the start.

    Returns:
        Logarithms of the prototypes' shares, weighted, shape (clusters, labels of all targets), and
        shape (n,), numbers of clusters.

    References:
        - Dhillon, Mallela and Kumar (2003), "A divisive information-theoretic feature clustering
          algorithm for text classification", Journal of Machine Learning Research 3, 1265-1287.
    """
    from sklearn.cluster import KMeans

    joined, prior = np.concatenate(shares, axis=1), np.concatenate([s.mean(axis=0) for s in shares])
    prior = np.maximum(prior, 1e-9)
    if weights is None:
        weights = [1.0 / max(_entropy(part.mean(axis=0)), 1e-3) for part in shares]
    scale = np.repeat(np.asarray(weights, dtype=np.float64), [part.shape[1] for part in shares])
    start = joined / np.sqrt(prior) * np.sqrt(scale)
    clusters = min(clusters, len(np.unique(start, axis=0)))
    members = np.asarray(
        KMeans(clusters, n_init=1, max_iter=15, random_state=seed).fit(start).labels_
    )
    for _ in range(25):
        sums = np.stack([np.bincount(members, column, clusters) for column in joined.T], axis=1)
        counts = np.bincount(members, minlength=clusters)[:, None]
        logs = np.log(np.maximum((sums + 0.5 * prior) / (counts + 0.5), 1e-9)) * scale
        moved = (joined @ logs.T).argmax(axis=1)
        if np.array_equal(moved, members):
            break
        members = moved
    kept = np.unique(members)
    return np.ascontiguousarray(logs[kept]), np.searchsorted(kept, members)


def codebook(shares: Sequence[Array], masses: Array, *, codes: int, seed: int) -> Integers:
    """Return the code of each node, shape (nodes,), where nodes are clustered as rows are.

    Args:
        shares: shares for each target, shape (nodes, labels), rows sum to 1.
        masses: shape (nodes,).
        codes: the number of codes, at least 2.
        seed: the seed of the starts.
    """
    joined = np.concatenate(shares, axis=1)
    scale = np.repeat(
        [1.0 / max(_entropy(masses @ part / masses.sum()), 1e-3) for part in shares],
        [part.shape[1] for part in shares],
    )
    random, best = np.random.default_rng(seed), (-math.inf, np.zeros(len(joined), dtype=np.int64))
    for _ in range(3):
        chosen = random.choice(len(joined), codes, replace=False, p=masses / masses.sum())
        centres = joined[chosen].copy()
        for _ in range(30):
            near = joined @ (np.log(np.maximum(centres, 1e-9)) * scale).T
            members = near.argmax(axis=1)
            for code in np.unique(members):
                own = members == code
                centres[code] = masses[own] @ joined[own] / masses[own].sum()
        best = max(best, (float(masses @ near.max(axis=1)), members), key=lambda pair: pair[0])
    return np.asarray(np.unique(best[1], return_inverse=True)[1], dtype=np.int64)


def response_on(members: Integers, *, epsilon: float) -> Array:
    """Return randomised response on a code of each node, shape (nodes, codes).

    Args:
        members: shape (nodes,), codes from 0 without gaps.
        epsilon: above 0.
    """
    codes, odds = int(members.max()) + 1, math.exp(min(epsilon, LARGEST_EPSILON))
    table = np.full((codes, codes), 1.0 / (odds + codes - 1))
    np.fill_diagonal(table, odds / (odds + codes - 1))
    return np.asarray(table[members])


def _entropy(shares: Array) -> float:
    shares = shares[shares > 0]
    return -float((shares * np.log(shares)).sum())
