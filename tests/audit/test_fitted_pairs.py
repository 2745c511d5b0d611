"""The pairs that are found are neighbours, and the worst of those that a search can see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.audit.fitted_pairs import certified_pairs, posthoc_pairs, power_pairs
from reticent.core import Norm
from reticent.core.coded_rows import CodedRows
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
    [pair] = posthoc_pairs(query, X[:20], random=np.random.default_rng(0))
    assert pair.centers is not None
    change = float(np.abs(pair.centers[0] - pair.centers[1]).sum())
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
    query = encoder.query_
    coded = encoder.checked(X)
    [pair] = power_pairs(query, coded, random=np.random.default_rng(0))
    values, dense = query.exact(coded.dense()), coded.dense()
    apart = np.linalg.norm(dense[:, None] - dense[None], axis=-1)
    change = np.linalg.norm(values[:, None] - values[None], axis=-1)
    assert pair.centers is not None
    found = float(np.linalg.norm(pair.centers[0] - pair.centers[1]))
    assert found == pytest.approx(change[apart <= 0.1].max())
    far = encoder.checked(X[[0, 149]])
    assert power_pairs(query, far, random=np.random.default_rng(0)) == []


def found_pairs(rows: list[float], values: list[float], radius: float | None) -> Any:
    """Of a release that answers a row of one column with the value of its place."""
    plan = SimpleNamespace(radius=radius, mechanism="k-norm-l2")
    query: Any = SimpleNamespace(
        plan=plan, mechanism=None, exact=lambda dense: np.array(values)[:, None]
    )
    coded = CodedRows.of(np.array(rows)[:, None])
    return power_pairs(query, coded, random=np.random.default_rng(0))


def test_a_row_is_no_neighbour_of_itself_or_of_an_equal_row() -> None:
    assert found_pairs([0.25, 0.25], [0.0, 1.0], None) == []
    [pair] = found_pairs([0.25, 0.25, 0.75], [0.0, 9.0, 1.0], None)
    assert np.ravel(pair.centers).tolist() == [9.0, 1.0]


def test_small_differences_of_large_numbers_are_not_lost() -> None:
    """Of one column alone, so that no processor's order of summation changes what is asked: squares
    of these numbers round, and squares and products together give 0 for every distance here.
    """
    assert found_pairs([0.5, 0.5 + 2.0**-30], [0.0, 1.0], 2.0**-31) == []
    [pair] = found_pairs([0.0, 1.0, 1.0], [2.0**27, 2.0**27 + 2.0**-20, 2.0**27], None)
    assert np.ptp(pair.centers) == 2.0**-20


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
