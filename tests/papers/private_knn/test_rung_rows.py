"""What the ways work on: directions of public rows, and the student of released labels."""

from __future__ import annotations

import numpy as np

from papers.private_knn.rung_rows import Rows


def test_distances_use_directions_of_public_rows_alone(clusters: Rows) -> None:
    near = clusters.near
    assert near.private.shape == (600, 40)
    np.testing.assert_allclose(near.public.mean(axis=0), 0, atol=1e-9)
    moved = Rows(
        clusters.private + 5.0,
        clusters.codes,
        clusters.public,
        clusters.public_codes,
        clusters.scored,
        clusters.truth,
        clusters.classes,
    )
    np.testing.assert_array_equal(moved.near.scored, near.scored)
