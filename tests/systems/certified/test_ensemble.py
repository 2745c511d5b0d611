"""A vote of certified classifiers: members, distances, answers, bundles."""

from __future__ import annotations

import numpy as np

from reticent.core import AddRemove, Guarantee
from reticent.retraining import record_buckets, record_keys, vote_distances
from reticent.systems import CertifiedClassifier, CertifiedEnsemble


def blobs(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    return random.normal(size=(count, 2)) + np.where(labels == 1, 1.0, -1.0)[:, None], labels


def test_every_member_is_a_classifier_of_its_own_records() -> None:
    X, y = blobs(400)
    ensemble = CertifiedEnsemble(classes=[0, 1], epsilon=1.0, members=4, k_max=6).fit(X, y)
    member = record_buckets(record_keys(X, y), buckets=4, purpose="ensemble member")
    queries = blobs(200, seed=1)[0]
    labels, distances = ensemble.member_distances(queries)
    for index in range(4):
        alone = CertifiedClassifier(classes=[0, 1], epsilon=1.0, k_max=6).fit(
            X[member == index], y[member == index]
        )
        np.testing.assert_array_equal(alone.stable_distances(queries)[0], labels[index])
        np.testing.assert_array_equal(alone.stable_distances(queries)[1], distances[index])
    for mine, reference in zip(
        ensemble.stable_distances(queries),
        vote_distances(labels, distances, classes=2),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, reference)
    assert ensemble.guarantee == Guarantee(1.0, 0.0, AddRemove(1, data_set=ensemble.data_set_))


def test_a_member_without_records_still_votes() -> None:
    ensemble = CertifiedEnsemble(classes=[0, 1], epsilon=1.0, members=12, k_max=2).fit(*blobs(8))
    labels, distances = ensemble.member_distances([[1.0, 1.0]])
    assert (distances == 0).any()
    assert len(ensemble.release([[1.0, 1.0]]).values) == 1
    assert labels.shape == (12, 1)
