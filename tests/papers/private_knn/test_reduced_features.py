"""Principal directions of public features: every row by itself."""

from __future__ import annotations

import numpy as np

from papers.private_knn.reduced_features import ReducedFeatures
from reticent.training.features import HogFeatures, IdentityFeatures, Origin


def test_a_row_does_not_depend_on_its_batch() -> None:
    pictures = np.random.default_rng(0).random((9, 64))
    plain = HogFeatures(image_shape=(1, 8, 8), cell=4, orientations=9, upright=False)
    features = ReducedFeatures.of(plain, pictures, dimension=3)
    assert features.origin is Origin.PUBLIC
    whole = features.features(pictures)
    for rows in (slice(3, 4), slice(2, 9), slice(None, None, -1)):
        assert (features.features(pictures[rows]) == whole[rows]).all()


def test_reduction_keeps_the_directions_of_most_variance() -> None:
    rng = np.random.default_rng(2)
    public = rng.normal(size=(200, 4)) * [5.0, 1.0, 3.0, 0.1]
    reduced = ReducedFeatures.of(IdentityFeatures(), public, dimension=2)
    assert (np.abs(reduced.directions).argmax(axis=1) == [0, 2]).all()
    np.testing.assert_allclose(reduced.directions @ reduced.directions.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(
        reduced.features(public), (public - public.mean(axis=0)) @ reduced.directions.T, atol=1e-9
    )
