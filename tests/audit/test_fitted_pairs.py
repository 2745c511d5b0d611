"""The pairs that are found are neighbours, and the worst of those that a search can see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.attacks.candidates import Candidates, points_of, worst_neighbours
from reticent.audit.fitted_pairs import certified_pairs, near_pairs
from reticent.core import Norm
from reticent.core.guarantees import Neighborhood
from reticent.noise import AuditSampler
from reticent.systems import (
    CertifiedClassifier,
    ClippedDescent,
    NoiseAware,
    PosthocEncoder,
    PowerEncoder,
    VectorTraining,
)

X, Y = load_iris(return_X_y=True)


def shown(query: Any, rows: Any) -> Any:
    """Return what is shown of the one pair of neighbours that is found, or nothing."""
    points = points_of(query, rows)
    found = worst_neighbours(query, rows, points, around=64, random=np.random.default_rng(0))
    return [side for pair in found.values() for side in pair.shown]


@pytest.mark.parametrize("norm", [Norm.L1, Norm.LINF])
def test_embeddings_change_as_far_as_the_radius_lets_them(norm: Norm) -> None:
    """Within the certificate, and near the worst of ten thousand random neighbours."""
    encoder = PosthocEncoder(
        epsilon=1.0,
        delta=0.0,
        radius=0.2,
        input_norm=norm.value,
        embedder="identity",
        mechanism="laplace",
        obfuscator=NoiseAware(outputs=2, hidden=(8,), epochs=1),
        random_state=0,
    ).fit(X, Y)
    query = encoder.query_
    start, end = shown(query, X[:20])
    change = float(np.abs(start - end).sum())
    assert 0.0 < change <= query.plan.proposal * 0.2 * (1 + 1e-3)
    # No random pair of neighbours around the same rows is worse than the best of the search.
    random = np.random.default_rng(1)
    moves = random.normal(size=(20, 500, 4))
    moves *= 0.2 / norm.of(moves)[..., None]
    near = np.clip(
        X[:20, None] + moves, query.bound.domain.lower, query.bound.domain.upper
    ).reshape(-1, 4)
    moved = np.abs(query.exact(near) - np.repeat(query.exact(X[:20]), 500, axis=0)).sum(axis=1)
    assert change >= 0.8 * moved.max()


def test_rows_within_the_radius_alone_are_neighbours() -> None:
    encoder = PowerEncoder(
        epsilon=1.0,
        delta=0.0,
        radius=0.1,
        schema=(0.0, 8.0),
        mechanism="k-norm-l2",
        random_state=0,
        training=VectorTraining(epochs=1),
    ).fit(X, Y)
    query: Any = encoder.query_
    coded = encoder.checked(X)
    values, dense = query.exact(coded.dense()), coded.dense()
    apart = np.linalg.norm(dense[:, None] - dense[None], axis=-1)
    change = np.linalg.norm(values[:, None] - values[None], axis=-1)
    found = float(np.linalg.norm(np.subtract(*shown(query, coded))))
    assert found == pytest.approx(change[apart <= 0.1].max())
    far = encoder.checked(X[[0, 149]])
    assert near_pairs(query, far, random=np.random.default_rng(0)) == []


def neighbours(rows: list[float], radius: float | None) -> list[list[int]]:
    """Return the neighbours among rows of one column."""
    points = np.array(rows)[:, None]
    near = None if radius is None else Neighborhood(Norm.L2, radius, "rows")
    unused: Any = None
    found = Candidates(points, near, 1, points, Norm.L2, unused, unused).neighbours
    return [list(pair) for pair in zip(*found, strict=True)]


def test_a_row_is_no_neighbour_of_itself_or_of_an_equal_row() -> None:
    assert neighbours([0.25, 0.25], None) == neighbours([0.25, 0.25], 1.0) == []
    assert neighbours([0.25, 0.25, 0.75], None) == [[0, 2], [1, 2]]


def test_small_differences_are_not_lost() -> None:
    """Of one column alone, so that no processor's order of summation changes what is asked: squares
    of these numbers round, and squares and products together give 0 for every distance here.
    """
    assert neighbours([0.5, 0.5 + 2.0**-30], 2.0**-31) == []
    assert neighbours([0.5, 0.5 + 2.0**-30], 2.0**-30) == [[0, 1]]


def test_certified_distances_change_by_one_and_labels_at_zero_only() -> None:
    y = (X[:, 2] > 2.5).astype(int)
    classifier = CertifiedClassifier(
        epsilon=1.0,
        delta=0.0,
        k_max=5,
        classes=range(2),
        training=ClippedDescent(epochs=4, input_bound=8.0),
    ).fit(np.tile(X, (20, 1)), np.tile(y, 20))
    query = classifier.query_
    _, distances = query.stable_distances(X)
    assert distances.max() > 0
    names = [pair.name for pair in certified_pairs(query, X)]
    assert names[0] == "certified distance 0, and another label"
    levels = [[int(word) for word in name.split() if word.isdigit()] for name in names[1:]]
    assert levels
    assert all(higher - lower == 1 for higher, lower in levels)
    assert {higher for higher, _ in levels} <= set(distances.tolist())
    assert certified_pairs(query, X)[0].first(50, AuditSampler(0)).shape == (50,)
