"""Blobs: the clouds are where they should be, and only the seed decides them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.datasets.blobs import CENTERS, load_blobs


@pytest.mark.parametrize("kind", CENTERS)
def test_best_rule_is_as_good_as_stated(kind: str) -> None:
    data = load_blobs(kind, points=10, held_out=20_000)
    right = ((data.test_rows.sum(axis=1) > 0) == data.test_labels).mean()
    best = stats.norm.cdf(np.sqrt(2) * CENTERS[kind])
    assert abs(right - best) < 4.5 * np.sqrt(best * (1 - best) / 20_000)  # false alarm below 1e-5
