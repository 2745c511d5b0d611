"""PATE's noise and what it withholds."""

from __future__ import annotations

import pytest

from papers.private_knn.pate_rung import pate_steps
from papers.private_knn.rung_rows import DELTA
from reticent.accounting import private_knn_total


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_the_noise_meets_the_total(threshold: float | None) -> None:
    steps = pate_steps(1.0, 100, 50, threshold)
    assert steps.sampling_probability == 1.0
    assert 0.98 < private_knn_total(steps, delta=DELTA).epsilon <= 1.0
    assert steps.threshold == (None if threshold is None else 25.0)
