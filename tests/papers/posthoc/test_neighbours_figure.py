"""Decoded neighbours: farther corners differ more, the pictures shown are those of the search."""

from __future__ import annotations

import numpy as np

from papers.datasets import load
from papers.posthoc.neighbours_figure import figure, neighbours
from reticent.training.embedder import EmbedderConfig, train_embedder


def test_the_farthest_of_all_corners_is_shown() -> None:
    data = load("digits")
    config = EmbedderConfig(
        image_shape=(8, 8), latent_dimension=2, beta=0.4, epochs=2, batch_size=64, width=16
    )
    embedder = train_embedder(data.train_images, config)
    found = neighbours(data, embedder, radii=(0.1, 1.0), seed=0)
    assert found.originals.shape == (10, 8, 8)
    assert found.distances[0.1] < found.distances[1.0]
    # by hand, for the first class
    point = embedder.embed(found.originals[:1]).astype(np.float64)
    signs = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    pictures = [embedder.pictures(point + np.array(sign, dtype=float))[0] for sign in signs]
    apart = [np.square(picture - found.decoded[0]).mean() for picture in pictures]
    np.testing.assert_allclose(found.farthest[1.0][0], pictures[int(np.argmax(apart))], atol=1e-6)
    assert len(figure(found).axes) == 4 * 10
