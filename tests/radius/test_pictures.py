"""Farthest neighbours: decoded, at the radius, those that differ most first."""

from __future__ import annotations

import numpy as np

from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.radius.pictures import farthest_neighbours


class Decoder:
    """The second coordinate shows ten times as much as the first."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def pictures(self, embeddings):
        points = np.asarray(embeddings)
        self.seen.append(points)
        return (points * [1.0, 10.0]).reshape(-1, 1, 2).astype(np.float32)


def test_they_are_at_the_radius_and_look_least_alike() -> None:
    decoder, point = Decoder(), np.array([[1.0, 2.0]])
    found = farthest_neighbours(
        decoder,
        point,
        radius=0.5,
        norm=Norm.L2,
        domain=Box([-9.0, -9.0], [9.0, 9.0]),
        shown=2,
        seed=0,
    )
    assert found is not None
    pictures, neighbours = found
    np.testing.assert_allclose(pictures, [[[1.0, 20.0]]])
    np.testing.assert_allclose(Norm.L2.of(decoder.seen[-1] - point), 0.5)
    assert sorted(neighbours[0, :, 0, 1].tolist()) == [15.0, 25.0]


def test_without_a_decoder_there_are_none() -> None:
    class Nothing:
        def pictures(self, embeddings):
            return None

    box = Box([0.0], [1.0])
    assert (
        farthest_neighbours(
            Nothing(), np.zeros((1, 1)), radius=1.0, norm=Norm.L1, domain=box, shown=1, seed=0
        )
        is None
    )
