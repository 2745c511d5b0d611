"""Channels from bins of a public score to outputs: which is worth most, exactly, for a given joint
distribution of bins and labels.

Every (epsilon, 0)-private channel of finitely many bins is worth no more, under a convex criterion,
than some *staircase* channel: each of its columns holds two values a factor e^epsilon apart. The
weights of all such columns are the variables of a linear program.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from reticent.core.arrays import Array, Booleans
from reticent.core.errors import CalibrationFailed
from reticent.grids.shares import WHOLE, Shares, excess
from reticent.mechanisms import AnyTwo
from reticent.systems.scores import Scores, channel_scores

RESPONSES = ("randomised response", "subset selection", "staircase")
"""How tables of shares are made."""

MOST_OUTPUTS = 64
"""Answers of one table: a server learns from each as a column."""

ALL_SUBSETS = 8
"""Up to so many bins every staircase column is a variable, and the optimum is one over all private
channels. Beyond, the columns are those raised on an interval of consecutive bins or outside one."""

KEPT = "information, the others kept"
"""A criterion of staircases: the most information among those that keep accuracy and balanced
accuracy, see ``kept_floors``."""

MOST_LOST: Mapping[str, float] = MappingProxyType({"accuracy": 0.005, "balanced_accuracy": 0.0075})
"""How far a code chosen by information may be below the best one by another criterion."""

_AIMED = 2.0 / 3.0  # of that, so that on other rows than a channel is made for it is seldom more
_SLACK = 1e-9
_LARGEST_EPSILON = 22.0  # shares are multiples of 2^-32, which is e^-22.18
_ACCURACIES = (0.0, 0.5, 1.0)
_FIRST_MIX = 2.0**-28
_TINY = 1e-11


@dataclass(frozen=True, eq=False)
class Channel:
    """A checked table of shares and what it is worth.

    Attributes:
        response: how the table was made, one of ``RESPONSES``.
        shares: shape (outputs, bins), uint32, in multiples of 2^-32.
        scores: exact, for the joint distribution that it was chosen for.
    """

    response: str
    shares: Shares
    scores: Scores


def channels(joint: Array, *, epsilon: float, scoring: str) -> Iterator[Channel]:
    """Every kind of channel for the bins of ``joint``.

    Args:
        joint: probabilities of bin and label together, shape (bins, labels).
        epsilon: above 0.
        scoring: what the staircase channel is best at; for "auc", which is no sum over outputs,
            information plus several multiples of the accuracy. ``KEPT`` for that staircase alone.
    """
    bins = len(joint)
    if scoring == KEPT:
        if bins > 2:
            floors = kept_floors(joint, epsilon=epsilon)
            table = best_staircase(joint, epsilon=epsilon, scoring="information", floors=floors)
            yield _checked("staircase", table, joint, epsilon=epsilon)
        return
    tables = [("randomised response", randomised_response(bins, epsilon=epsilon))]
    tables += [
        ("subset selection", subset_selection(bins, size, epsilon=epsilon))
        for size in range(2, bins)
        if math.comb(bins, size) <= MOST_OUTPUTS
    ]
    if bins > 2:
        tables += [
            ("staircase", best_staircase(joint, epsilon=epsilon, scoring=scoring, accuracy=weight))
            for weight in (_ACCURACIES if scoring == "auc" else (0.0,))
        ]
    for response, table in tables:
        yield _checked(response, table, joint, epsilon=epsilon)


def _checked(response: str, table: Array, joint: Array, *, epsilon: float) -> Channel:
    shares = whole_shares(ordered(table, joint), epsilon=epsilon)
    return Channel(response, shares, channel_scores(shares @ joint / WHOLE))


def kept_floors(joint: Array, *, epsilon: float) -> dict[str, float]:
    """The least accuracy and balanced accuracy of a channel chosen by information.

    Accuracy is below the best there is for these bins by two thirds of ``MOST_LOST``; and so is
    balanced accuracy, or, where codes that keep the accuracy do not reach that, below the best of
    these.

    Args:
        joint: probabilities of bin and label together, shape (bins, labels).
        epsilon: above 0.
    """

    def most(scoring: str, floors: Mapping[str, float]) -> float:
        table = best_staircase(joint, epsilon=epsilon, scoring=scoring, floors=floors)
        return channel_scores(table.T @ joint).of(scoring)

    lost = _AIMED * MOST_LOST["balanced_accuracy"]
    kept = {"accuracy": most("accuracy", {}) - _AIMED * MOST_LOST["accuracy"]}
    best, reached = most("balanced_accuracy", {}), most("balanced_accuracy", kept)
    floor = best - lost if best - lost <= reached else reached - lost
    return {**kept, "balanced_accuracy": floor}


def ordered(table: Array, joint: Array) -> Array:
    """The columns in rising order of the mean label that they speak for."""
    together = table.T @ joint
    means = together @ np.arange(joint.shape[1]) / together.sum(axis=1)
    return table[:, np.argsort(means, kind="stable")]


def randomised_response(bins: int, *, epsilon: float) -> Array:
    """The bin itself with probability e^epsilon / (e^epsilon + bins - 1), each other one alike."""
    lie = 1.0 / (math.exp(min(epsilon, _LARGEST_EPSILON)) + bins - 1)
    table = np.full((bins, bins), lie)
    np.fill_diagonal(table, 1.0 - (bins - 1) * lie)
    return table


def subset_selection(bins: int, size: int, *, epsilon: float) -> Array:
    """A random set of ``size`` bins: each one with the record's own bin e^epsilon times as likely
    as each one without it.
    """
    sets = list(itertools.combinations(range(bins), size))
    table = np.ones((bins, len(sets)))
    for column, members in enumerate(sets):
        table[list(members), column] = math.exp(min(epsilon, _LARGEST_EPSILON))
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def staircase_patterns(bins: int, *, every: bool = False) -> Booleans:
    """Which bins are raised, shape (patterns, bins): all proper subsets up to ``ALL_SUBSETS`` bins,
    intervals and their complements beyond.

    Args:
        bins: how many there are, at least 2.
        every: whether all proper subsets are wanted whatever their number.
    """
    if every or bins <= ALL_SUBSETS:
        numbers = np.arange(1, 2**bins - 1)
        return np.asarray((numbers[:, None] >> np.arange(bins)) & 1, dtype=np.bool_)
    ends = [
        (start, stop)
        for start in range(bins)
        for stop in range(start + 1, bins + 1)
        if stop - start < bins
    ]
    places = np.arange(bins)
    inside = np.array([(start <= places) & (places < stop) for start, stop in ends])
    return np.unique(np.concatenate([inside, ~inside]), axis=0)


def best_staircase(
    joint: Array,
    *,
    epsilon: float,
    scoring: str,
    accuracy: float = 0.0,
    floors: Mapping[str, float] = MappingProxyType({}),
    every: bool = False,
) -> Array:
    """The channel of highest information (or accuracy, or balanced accuracy) among those whose
    columns are staircases, shape (bins, outputs).

    Every private channel can be had from a staircase channel by merging outputs, which raises none
    of the criteria, so that holds beside floors as well: what the program finds is the most that
    any private channel of these bins has of one criterion, given that much of the others.

    Args:
        joint: probabilities of bin and label together, shape (bins, labels).
        epsilon: above 0.
        scoring: as for ``channels``.
        accuracy: how many nats one unit of accuracy adds to the criterion, at least 0.
        floors: the least that the channel has of other criteria, by name, each a sum over outputs:
            information, accuracy or balanced accuracy.
        every: as for ``staircase_patterns``.

    Raises:
        CalibrationFailed: no channel reaches the floors, or the linear program did not finish.

    References:
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, theorems 2 and 4.
    """
    from scipy.optimize import linprog

    low = math.exp(-min(epsilon, _LARGEST_EPSILON))
    columns = np.where(staircase_patterns(len(joint), every=every), 1.0, low)

    def worth(of: str) -> Array:
        """What each column adds, shape (columns,)."""
        return _worth(columns @ joint, joint.sum(axis=0) / joint.sum(), of)

    solution = linprog(
        -(worth(scoring) + accuracy * worth("accuracy")),
        A_eq=columns.T,
        b_eq=np.ones(len(joint)),
        A_ub=np.array([-worth(of) for of in floors]) if floors else None,
        b_ub=np.array([_SLACK - least for least in floors.values()]) if floors else None,
        bounds=(0, None),
        method="highs-ds",
    )
    if solution.x is None or not solution.success:
        raise CalibrationFailed(
            f"scoring={scoring!r}: the linear program over staircase channels has no solution "
            f"(status={solution.status}); lower the floors ({dict(floors)!r}), or report the "
            f"epsilon ({epsilon:g}) and number of bins"
        )
    used = np.flatnonzero(solution.x > _TINY)
    used = used[np.argsort(-solution.x[used], kind="stable")][:MOST_OUTPUTS]
    table = columns[used].T * solution.x[used]
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def whole_shares(table: Array, *, epsilon: float) -> Shares:
    """``table`` in whole multiples of 2^-32 that meet the condition of privacy exactly, shape
    (outputs, bins), as ``FiniteChannel`` takes them.

    Rounding breaks a factor that is met with equality, so the table is mixed with the uniform one,
    with the smallest power of two as its weight for which the exact check passes; weight 1 always
    does.

    Args:
        table: shape (bins, outputs), rows sum to 1.
        epsilon: above 0.
    """
    bins, weight = AnyTwo(len(table)), _FIRST_MIX
    while True:
        mixed = (1.0 - weight) * table + weight / table.shape[1]
        shares = np.maximum(np.floor(mixed * WHOLE).astype(np.int64), 1)
        # What is missing is at most a unit for each output: it goes to the likeliest one.
        rows = np.arange(len(shares))
        shares[rows, mixed.argmax(axis=1)] += WHOLE - shares.sum(axis=1)
        whole = shares.T.astype(np.uint32)
        if weight >= 1.0 or not excess(whole, whole, lattice=bins, epsilon=epsilon):
            return np.asarray(whole)
        weight = min(2.0 * weight, 1.0)


def _worth(together: Array, prior: Array, scoring: str) -> Array:
    """What a column adds to the criterion, shape (columns,), from its probabilities together with
    each label, shape (columns, labels).
    """
    if scoring == "accuracy":
        return np.asarray(together.max(axis=1))
    if scoring == "balanced_accuracy":
        return np.asarray((together / prior).max(axis=1) / len(prior))
    totals = together.sum(axis=1, keepdims=True)
    safe = np.maximum(together, np.finfo(np.float64).tiny)
    return np.asarray((together * np.log(safe / (totals * prior))).sum(axis=1))
