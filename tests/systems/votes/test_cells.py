"""Cells: nearest centroids, shrinking, resolutions."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core.errors import InvalidParameter
from reticent.systems.votes.cell_model import nearest
from reticent.systems.votes.cells import CellsClassifier, _shrunk
from reticent.training.public_space import REACH

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 2))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


def test_nearest_is_exact_and_the_first_of_several() -> None:
    points = RNG.integers(-REACH, REACH, (3000, 5)).astype(float)
    centroids = RNG.integers(-REACH, REACH, (20, 5)).astype(float)
    centroids[7] = centroids[3]
    squares = [[sum(int(v) ** 2 for v in row) for row in point - centroids] for point in points]
    expected = [row.index(min(row)) for row in squares]
    assert nearest(points, centroids).tolist() == expected
    assert 7 not in expected


def test_shrinking_lowers_the_error() -> None:
    truth, noise = RNG.normal(size=(2000, 10)), 2.0
    noisy = truth + noise * RNG.normal(size=truth.shape)
    error = [np.square(found - truth).mean() for found in (noisy, _shrunk(noisy, 0 * truth, noise))]
    assert error[1] < 0.4 * error[0]
    assert np.allclose(_shrunk(noisy, truth, 1e-9), noisy)


def test_counts_are_those_of_the_records_where_noise_is_none() -> None:
    model = CellsClassifier(epsilon=1.0, delta=1e-5, classes=(0, 1), cells=9)
    model.simulate_fit(X[:2000], Y[:2000], public_X=X[2000:], seed=0, noise_scale=1e-9)
    cells = nearest(model._points(X[:2000]), model.centroids_)
    for cell in range(9):
        counts = np.bincount(Y[:2000][cells == cell], minlength=2)
        # Shrinking goes by the noise of a release, which is a few records here.
        away = np.abs(model.votes_[cell] - (counts - counts.mean())).max()
        assert away <= 2 * model.noise_


def test_public_labels_help_at_little_epsilon() -> None:
    right = []
    for labels in (None, Y[2000:]):
        runs = [
            CellsClassifier(epsilon=0.02, delta=1e-5, classes=(0, 1), cells=16)
            .simulate_fit(X[:2000], Y[:2000], public_X=X[2000:], public_y=labels, seed=seed)
            .predict(X[:2000])
            == Y[:2000]
            for seed in range(8)
        ]
        right.append(np.mean(runs))
    assert right[1] > right[0] + 0.02


@pytest.mark.parametrize("cells", [0, [], [8, 8], 2**17])
def test_cells_that_make_no_sense_are_refused(cells: object) -> None:
    model = CellsClassifier(epsilon=1.0, delta=1e-5, classes=(0, 1), cells=cells)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="cells"):
        model.fit(X, Y, public_X=X)
