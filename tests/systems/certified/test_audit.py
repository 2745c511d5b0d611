"""Whole training sets one record apart, under audit: ours passes, what was published is refuted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from papers.claims.cases import response_case
from reticent.audit import AuditCase, refute_recorded
from reticent.core import AddRemove
from reticent.mechanisms import StabilityResponse
from reticent.noise import AuditSampler, SecureSampler
from reticent.published.certified import SmoothCauchy, published_vote_distances
from reticent.systems import CertifiedClassifier, CertifiedEnsemble
from reticent.systems.record_labels import Classes

MILLION, ALPHA = 1_000_000, 1e-3
RUNS = [100_000, pytest.param(MILLION, marks=pytest.mark.soak)]
GRID = np.stack(np.meshgrid(np.linspace(-3, 3, 120), np.linspace(-3, 3, 120)), axis=-1).reshape(
    -1, 2
)


def refuted(case: AuditCase, runs: int = 100_000) -> bool:
    alpha, sampler = ALPHA, AuditSampler(0)
    if runs == MILLION:
        alpha, sampler = 1e-9, SecureSampler()
    return case.bet(draws=runs, alpha=alpha, sampler=sampler, stop=True).refuted


def data(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    return random.normal(size=(count, 2)) + np.where(labels == 1, 1.0, -1.0)[:, None], labels


@pytest.fixture(scope="module")
def pair() -> list[tuple[np.ndarray, np.ndarray]]:
    """Labels and stable distances of many queries, with all of 200 records and without the
    first.
    """
    X, y = data(0, 200)
    return [
        CertifiedClassifier(classes=[0, 1], epsilon=1.0, k_max=20)
        .fit(X[cut:], y[cut:])
        .stable_distances(GRID)
        for cut in (0, 1)
    ]


@pytest.mark.parametrize("runs", RUNS)
def test_the_worst_query_of_two_neighbouring_training_sets_stays_within_the_claim(
    pair, runs: int
) -> None:
    (labels, here), (others, there) = pair
    assert np.abs(here - there).max() == 1
    response = StabilityResponse(classes=2, epsilon=1.0, adjacency=AddRemove(1))
    worst = np.flatnonzero((here != there) & (labels == others))[:3]
    flips = np.flatnonzero(labels != others)[:2]
    for query in (*worst, *flips):
        case = response_case(
            response,
            labels=(int(labels[query]), int(others[query])),
            levels=(int(here[query]), int(there[query])),
            epsilon=1.0,
        )
        assert not refuted(case, runs)


@pytest.mark.parametrize("runs", RUNS)
def test_a_sparse_set_of_distances_is_refuted_on_real_neighbours(pair, runs: int) -> None:
    (labels, here), (others, there) = pair
    query = int(
        np.flatnonzero((np.maximum(here, there) == 20) & (np.minimum(here, there) == 19))[0]
    )
    sparse = SmoothCauchy(epsilon=2.0, adjacency=AddRemove(1), certified_at=(1, 5, 20))
    arguments = {
        "labels": (int(labels[query]), int(others[query])),
        "levels": (int(here[query]), int(there[query])),
    }
    assert refuted(response_case(sparse, **arguments, epsilon=2.0), runs)
    every = SmoothCauchy(epsilon=2.0, adjacency=AddRemove(1))
    assert not refuted(response_case(every, **arguments, epsilon=2.0), runs)


@pytest.mark.parametrize(("classes", "caught"), [("observed", True), ([0, 1, 2], False)])
def test_labels_taken_from_private_rows_are_caught(classes: Classes, caught: bool) -> None:
    """One record is the only one of its label; without it that label is never an answer."""
    X, y = data(2, 100)
    y[0] = 2
    epsilon, query = 1.0, np.tile([[0.1, -0.1]], (20_000, 1))
    answers = [
        CertifiedClassifier(classes=classes, epsilon=epsilon, k_max=1)
        .fit(X[cut:], y[cut:])
        .simulate(query, seed=cut)
        .values.astype(float)
        for cut in (0, 1)
    ]
    found = refute_recorded(
        *((part == 2) for part in answers), epsilon=epsilon, delta=0.0, alpha=ALPHA, seed=0
    )
    assert found.refuted is caught


@pytest.mark.slow
def test_the_published_distance_of_a_vote_is_refuted_on_real_neighbours() -> None:
    """One record decides a losing member: with it against the winners, without it with them."""
    X, y = data(1, 1200)
    found = [
        CertifiedEnsemble(classes=[0, 1], epsilon=1.0, members=5, k_max=30)
        .fit(X[cut:], y[cut:])
        .member_distances(GRID)
        for cut in range(12)
    ]
    jumps = []
    for cut, (first, second) in enumerate(pairwise(found)):
        one, other = published_vote_distances(*first), published_vote_distances(*second)
        same = (2 * first[0].sum(axis=0) > 5) == (2 * second[0].sum(axis=0) > 5)
        jump = np.where(same, np.abs(one - other), 0)
        query = int(jump.argmax())
        jumps.append((int(jump[query]), cut, query, int(one[query]), int(other[query])))
    size, cut, query, one, other = max(jumps)
    assert size > 15
    response = SmoothCauchy(epsilon=1.0, adjacency=AddRemove(1))
    assert refuted(response_case(response, labels=(1, 1), levels=(one, other), epsilon=1.0))
    ours = [
        CertifiedEnsemble(classes=[0, 1], epsilon=1.0, members=5, k_max=30)
        .fit(X[start:], y[start:])
        .stable_distances(GRID[query : query + 1])
        for start in (cut, cut + 1)
    ]
    levels = int(ours[0][1][0]), int(ours[1][1][0])
    assert abs(levels[0] - levels[1]) <= 1
    labels = int(ours[0][0][0]), int(ours[1][0][0])
    assert not refuted(
        response_case(
            StabilityResponse(classes=2, epsilon=1.0, adjacency=AddRemove(1)),
            labels=labels,
            levels=levels,
            epsilon=1.0,
        )
    )
