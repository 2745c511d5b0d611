"""Public linear maps against their definitions: variances, eigenvectors, class directions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from reticent.training.parts import PublicDiscriminants, PublicPCA

RANDOM = np.random.default_rng(0)
LABELS = np.arange(900) % 3
ROWS = RANDOM.normal(size=(900, 6)) * [3.0, 1.0, 0.01, 2.0, 0.5, 0.2]
ROWS[:, 1] += 3.0 * LABELS
ROWS[:, 4] += 2.0 * (LABELS == 1)


@pytest.mark.parametrize("outputs", [1, 3, 6])
def test_principal_components_agree_with_scikit_learn(outputs: int) -> None:
    released = PublicPCA(outputs=outputs).fit(ROWS).network().forward(ROWS)
    expected = PCA(n_components=outputs, svd_solver="full").fit_transform(ROWS)
    signs = np.sign((released * expected).sum(axis=0))
    np.testing.assert_allclose(released * signs, expected, atol=1e-9)


def test_discriminants_span_those_of_scikit_learn_and_are_orthonormal() -> None:
    part = PublicDiscriminants(shrinkage=1e-9).fit(ROWS, LABELS)
    assert part.weight_.shape == (2, 6)
    np.testing.assert_allclose(part.weight_ @ part.weight_.T, np.eye(2), atol=1e-12)
    oracle = LinearDiscriminantAnalysis(solver="eigen").fit(ROWS, LABELS).scalings_[:, :2]
    left, sizes, _ = np.linalg.svd(oracle, full_matrices=False)
    cosines = np.linalg.svd(part.weight_ @ left)[1]
    assert sizes.min() > 0
    assert cosines.min() > 1 - 1e-6
