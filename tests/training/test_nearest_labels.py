"""Released labels as a classifier, against scikit-learn's nearest neighbour."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from reticent.training.nearest_labels import NearestLabels


def test_it_is_the_nearest_neighbour_among_the_rows_with_a_label() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(500, 6)), rng.integers(-1, 4, size=500)
    asked = rng.normal(size=(2500, 6))  # more than two blocks
    own = NearestLabels.of(rows, labels, classes=4)
    oracle = KNeighborsClassifier(1).fit(rows[labels >= 0], labels[labels >= 0])
    np.testing.assert_array_equal(own.predict(asked), oracle.predict(asked))
    np.testing.assert_array_equal(own.probabilities(asked), np.eye(4)[own.predict(asked)])


def test_its_own_rows_have_their_labels() -> None:
    own = NearestLabels.of([[0.0], [1.0], [2.0]], [1, -1, 0], classes=2)
    assert own.predict([[0.0], [2.0], [1.0]]).tolist() == [1, 0, 1]  # the first of equally near


def test_without_a_label_it_is_constant() -> None:
    own = NearestLabels.of([[0.0], [1.0]], [-1, -1], classes=3)
    assert own.predict([[5.0], [0.0]]).tolist() == [0, 0]
    assert own.probabilities([[5.0]]).tolist() == [[1.0, 0.0, 0.0]]
