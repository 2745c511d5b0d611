"""The table of all ways: what a row says, and what ways score on generated rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.private_knn import rungs
from papers.private_knn.rung_rows import Rows
from papers.private_knn.rungs import descent


def test_seeds_reach_the_noise_of_released_models(clusters: Rows) -> None:
    quiet = descent(clusters, 50.0, (0, 1))
    assert min(quiet.right) > 0.9
    assert set(quiet.settings) == {"components", "whitening", "steps", "learning_rate"}
    models, _ = rungs._models(clusters.scaled, 0.5, (0, 1))
    assert not np.array_equal(models[0].weights_, models[1].weights_)


@pytest.mark.parametrize(
    "name",
    [
        "noisy gradient descent",
        "PATE, support vector machine on the surest labels",
    ],
)
def test_settings_come_from_public_rows_alone(name: str, clusters: Rows) -> None:
    """Other private records, as many, leave settings as they are; and answers do not depend on the
    truth that they are scored by, so over the three ways to shift it each of them is right once.
    """
    rng = np.random.default_rng(5)
    parts = ("private", "public", "scored")
    hard = replace(
        clusters,
        **{
            part: getattr(clusters, part) + 15 * rng.normal(size=getattr(clusters, part).shape)
            for part in parts
        },
    )
    others = replace(
        hard, private=rng.normal(size=hard.private.shape), codes=rng.permutation(hard.codes)
    )
    shifted = [replace(hard, truth=(hard.truth + by) % 3) for by in range(3)]
    found, other, *rest = (
        rungs.WAYS[name][1](rows, 5.0, (0, 1)) for rows in (shifted[0], others, *shifted[1:])
    )
    assert 0.35 < found.right[0] < 0.95  # settings matter
    assert found.settings == other.settings != {}
    assert np.sum([one.right for one in (found, *rest)], axis=0) == pytest.approx(1.0)
