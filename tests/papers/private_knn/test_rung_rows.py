"""What the ways work on: directions of public rows, and the student of released labels."""

from __future__ import annotations

from dataclasses import replace

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


def test_directions_are_the_principal_ones_of_public_rows(clusters: Rows) -> None:
    few = replace(clusters, public=clusters.public[:30], public_codes=clusters.public_codes[:30])
    for rows in (clusters, few):
        size = min(40, len(rows.public) - 1)
        centred = rows.public - rows.public.mean(axis=0)
        for found, seen, kept in (
            (rows.near, centred, size),
            (rows.scaled, centred / rows.public.std(axis=0), min(50, len(rows.public) - 1)),
        ):
            values = np.linalg.svd(seen, compute_uv=False)[:kept]
            np.testing.assert_allclose(np.linalg.norm(found.public, axis=0), values, rtol=1e-6)
            gram = found.public.T @ found.public
            np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-6 * values[0] ** 2)
