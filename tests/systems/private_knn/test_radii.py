"""Radii against the distances of public rows."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.neighbours.exhaustive import Exhaustive
from reticent.systems.private_knn.radii import kernels_by_share, kernels_of_radius


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_the_share_of_public_rows_lies_within(share: float) -> None:
    rng = np.random.default_rng(0)
    public = rng.integers(-900, 900, size=(200, 3)).astype(np.float32)
    queries = rng.integers(-900, 900, size=(20, 3)).astype(np.float32)
    kernels = kernels_by_share(queries, Exhaustive(public), 200, share=share, power=1)
    for query, kernel in zip(queries, kernels, strict=True):
        squared = ((public.astype(int) - query.astype(int)) ** 2).sum(axis=1)
        assert int((squared < kernel.squared_radius).sum()) == round(200 * share)
        assert int((squared <= kernel.squared_inner).sum()) == max(1, round(200 * share / 16))


def test_one_radius_is_the_same_for_all_in_units_of_the_features() -> None:
    kernels = kernels_of_radius(3, 2.5, per_unit=10.0, power=2)
    assert [(one.squared_inner, one.squared_radius, one.power) for one in kernels] == [
        (156, 626, 2)
    ] * 3
    [widest] = kernels_of_radius(1, 1e300, per_unit=1.0, power=0)
    assert widest.squared_radius == 4 * 2048**2 + 1
