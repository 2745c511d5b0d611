"""Public linear maps against their definitions: variances, eigenvectors, class directions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from reticent.training.parts import LiveCoordinates, PublicDiscriminants, PublicPCA

RANDOM = np.random.default_rng(0)
LABELS = np.arange(900) % 3
ROWS = RANDOM.normal(size=(900, 6)) * [3.0, 1.0, 0.01, 2.0, 0.5, 0.2]
ROWS[:, 1] += 3.0 * LABELS
ROWS[:, 4] += 2.0 * (LABELS == 1)


def test_live_coordinates_are_those_that_vary() -> None:
    part = LiveCoordinates(least_share=0.05).fit(ROWS)
    np.testing.assert_array_equal(part.network().forward(ROWS), ROWS[:, [0, 1, 3, 4, 5]])
    assert LiveCoordinates(least_share=0.0).fit(ROWS).network().output_dimension == 6
    # One constant column among constant ones: none is dropped, so there is something to release.
    assert LiveCoordinates().fit(np.ones((5, 2))).network().output_dimension == 2


@pytest.mark.parametrize("outputs", [1, 3, 6])
def test_principal_components_agree_with_scikit_learn(outputs: int) -> None:
    released = PublicPCA(outputs=outputs).fit(ROWS).network().forward(ROWS)
    expected = PCA(n_components=outputs, svd_solver="full").fit_transform(ROWS)
    signs = np.sign((released * expected).sum(axis=0))
    np.testing.assert_allclose(released * signs, expected, atol=1e-9)


def test_more_components_than_coordinates_are_all_of_them() -> None:
    assert PublicPCA(outputs=32).fit(ROWS).network().output_dimension == 6
    sizes = [part.outputs for part in PublicPCA(outputs=(2, 32)).variants()]
    assert sizes == [2, 32]


def test_discriminants_span_those_of_scikit_learn_and_are_orthonormal() -> None:
    part = PublicDiscriminants(shrinkage=1e-9).fit(ROWS, LABELS)
    assert part.weight_.shape == (2, 6)
    np.testing.assert_allclose(part.weight_ @ part.weight_.T, np.eye(2), atol=1e-12)
    oracle = LinearDiscriminantAnalysis(solver="eigen").fit(ROWS, LABELS).scalings_[:, :2]
    left, sizes, _ = np.linalg.svd(oracle, full_matrices=False)
    cosines = np.linalg.svd(part.weight_ @ left)[1]
    assert sizes.min() > 0
    assert cosines.min() > 1 - 1e-6


def test_shrinkage_makes_fewer_rows_than_coordinates_do() -> None:
    random = np.random.default_rng(1)
    labels = np.arange(40) % 2
    rows = random.normal(size=(40, 100))
    rows[:, 0] += 8.0 * labels
    weight = PublicDiscriminants().fit(rows, labels).weight_
    assert weight.shape == (1, 100)
    # Without shrinkage the covariance within classes has rank 38 of 100, and no direction is left.
    fresh = random.normal(size=(400, 100))
    fresh[:, 0] += 8.0 * (np.arange(400) % 2)
    values = fresh @ weight[0]
    above = values > values.mean()
    assert (
        max((above == (np.arange(400) % 2)).mean(), (above != (np.arange(400) % 2)).mean()) > 0.98
    )
