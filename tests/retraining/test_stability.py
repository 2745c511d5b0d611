"""Stable distances of labels and votes: never too large, and at most 1 apart between neighbours."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent.published import published_vote_distances
from reticent.retraining import (
    ParameterIntervals,
    TrainingSettings,
    parameter_intervals,
    stable_distances,
    vote_distances,
)

CASES: dict[str, dict[str, Any]] = {
    "logistic": {"classes": 2},
    "softmax": {"classes": 3},
    "mlp": {"classes": 2, "hidden": (8,)},
    "mlp, three labels": {"classes": 3, "hidden": (8,)},
}


def records(
    random: np.random.Generator, count: int, classes: int, spread: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    labels = random.integers(0, classes, count)
    return 2.0 * np.eye(3)[labels] + spread * random.normal(size=(count, 3)), labels


def trained(
    name: str, data: tuple[np.ndarray, np.ndarray], k_max: int, **fields: Any
) -> ParameterIntervals:
    settings = TrainingSettings(features=3, **{**CASES[name], **fields})
    return parameter_intervals(
        *data, settings, k_max=k_max, initial=settings.initial(0 if settings.hidden else None)
    )


def forward(weights: list[np.ndarray], X: np.ndarray) -> np.ndarray:
    """Labels by plain matrix products."""
    for layer in weights[:-1]:
        X = np.maximum(np.c_[X, np.ones(len(X))] @ layer.T, 0.0)
    logits = np.c_[X, np.ones(len(X))] @ weights[-1].T
    return (logits[:, 0] > 0).astype(int) if logits.shape[1] == 1 else logits.argmax(axis=1)


@pytest.mark.parametrize("name", CASES)
def test_every_weight_in_a_stable_interval_gives_the_label(name: str) -> None:
    random = np.random.default_rng(0)
    intervals = trained(name, records(random, 400, CASES[name]["classes"]), 30)
    queries = np.round(records(random, 500, 3, spread=2.0)[0] * 4096) / 4096
    labels, distances = stable_distances(intervals, queries)
    assert (labels == forward(intervals.nominal, queries)).mean() > 0.999
    assert len(np.unique(distances)) > 5
    for k in (0, 3, 10, 30):
        stable = distances >= k
        for _ in range(30):
            corners = [
                np.where(random.random(low.shape) < 0.5, low, high)
                for low, high in intervals.weights(k)
            ]
            assert (forward(corners, queries[stable]) == labels[stable]).all()


def test_the_distance_of_a_linear_model_is_the_largest_possible() -> None:
    """One step further, some weight of the box disagrees: the worst corner for the query."""
    random = np.random.default_rng(1)
    intervals = trained("logistic", records(random, 400, 2), 40)
    queries = np.round(records(random, 300, 2, spread=2.0)[0] * 4096) / 4096
    labels, distances = stable_distances(intervals, queries)
    points = np.c_[queries, np.ones(len(queries))]
    for k in range(1, 41):
        next_ = distances == k - 1
        [(low, high)] = intervals.weights(k)
        worst = np.where((points[next_] > 0) == (labels[next_, None] == 1), low, high)
        assert ((np.sum(worst * points[next_], axis=1) > 0).astype(int) != labels[next_]).all()


@pytest.mark.parametrize("name", CASES)
def test_a_query_does_not_see_the_others(name: str) -> None:
    random = np.random.default_rng(2)
    intervals = trained(name, records(random, 100, CASES[name]["classes"]), 10)
    queries = random.normal(size=(1500, 3)) * 3
    labels, distances = stable_distances(intervals, queries)
    for row in (0, 5, 1023, 1024, 1499):
        alone = stable_distances(intervals, queries[row : row + 1])
        assert (alone[0][0], alone[1][0]) == (labels[row], distances[row])
    assert [part.shape for part in stable_distances(intervals, np.zeros((0, 3)))] == [(0,), (0,)]


def cheapest_change(
    votes: tuple[int, ...], costs: tuple[int, ...], classes: int
) -> tuple[int, int]:
    """Winner, and least cost of votes with another winner less 1, by trying all votes."""

    def winner(of: tuple[int, ...]) -> int:
        return int(np.bincount(of, minlength=classes).argmax())

    first = winner(votes)
    prices = [
        sum(cost + 1 for old, new, cost in zip(votes, other, costs, strict=True) if old != new)
        for other in product(range(classes), repeat=len(votes))
        if winner(other) != first
    ]
    return first, min(prices) - 1


@pytest.mark.parametrize(
    ("members", "classes"), [(1, 2), (4, 2), (5, 2), (7, 2), (4, 3), (5, 3), (5, 4)]
)
def test_votes_against_all_possible_votes(members: int, classes: int) -> None:
    random = np.random.default_rng(4)
    votes, costs = random.integers(0, classes, (members, 40)), random.integers(0, 6, (members, 40))
    labels, distances = vote_distances(votes, costs, classes=classes)
    for query in range(40):
        expected = cheapest_change(
            tuple(votes[:, query].tolist()), tuple(costs[:, query].tolist()), classes
        )
        assert (labels[query], distances[query]) == expected


def neighbouring_votes(
    random: np.random.Generator, votes: np.ndarray, costs: np.ndarray, classes: int
) -> tuple[Any, Any]:
    """One member of every query changes as it may: its distance by at most 1, or at distance 0
    its label.
    """
    others, prices = votes.copy(), costs.copy()
    columns = np.arange(votes.shape[1])
    member = random.integers(0, len(votes), votes.shape[1])
    flips = (costs[member, columns] == 0) & (random.random(votes.shape[1]) < 0.7)
    others[member, columns] = np.where(
        flips, random.integers(0, classes, votes.shape[1]), votes[member, columns]
    )
    step = np.where(flips, 0, random.integers(-1, 2, votes.shape[1]))
    prices[member, columns] = np.maximum(costs[member, columns] + step, 0)
    return others, prices


def vote_moves(
    random: np.random.Generator, queries: int, members: int, classes: int
) -> tuple[int, list[int], list[int]]:
    """The largest move of a distance between neighbours, and the distances that occur on either
    side where the label moves.
    """
    votes = random.integers(0, classes, (members, queries))
    costs = random.integers(0, 9, (members, queries)) * random.integers(0, 2, (members, queries))
    here = vote_distances(votes, costs, classes=classes)
    there = vote_distances(*neighbouring_votes(random, votes, costs, classes), classes=classes)
    differ = here[0] != there[0]
    move = int(np.abs(here[1] - there[1]).max())
    return move, np.unique(here[1][differ]).tolist(), np.unique(there[1][differ]).tolist()


@pytest.mark.parametrize("queries", [20_000, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_vote_moves_by_at_most_one(classes: int, queries: int) -> None:
    random = np.random.default_rng(5)
    for members in (1, 3, 10, 25):
        assert vote_moves(random, queries, members, classes) == (1, [0], [0])


def test_the_published_sum_jumps_between_neighbours() -> None:
    """One losing vote at distance 0 joins the winners: the published distance moves by 101, ours
    by 1.
    """
    votes, costs = np.array([[1]] * 8 + [[0]]), np.array([[100]] * 8 + [[0]])
    joined = np.ones((9, 1), dtype=int)
    assert (
        published_vote_distances(joined, costs) - published_vote_distances(votes, costs)
    ).tolist() == [101]
    ours = [vote_distances(given, costs, classes=2)[1][0] for given in (votes, joined)]
    assert ours == [403, 404]
