"""Weights of labels: from public shares, never above 1."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core.errors import InvalidParameter
from reticent.retraining.class_weights import checked_weights, weights_of_prevalence


def test_weighted_labels_count_alike() -> None:
    shares = {"a": 0.1, "b": 0.6, "c": 0.3}
    weights = weights_of_prevalence(shares, np.array(["a", "b", "c"]))
    assert weights == pytest.approx((1.0, 1 / 6, 1 / 3))
    assert [share * weight for share, weight in zip(shares.values(), weights, strict=True)] == (
        pytest.approx([0.1] * 3)
    )
    assert weights_of_prevalence(None, np.arange(3)) == (1.0, 1.0, 1.0)
    assert weights_of_prevalence({0: 30, 1: 10}, np.arange(2)) == pytest.approx((1 / 3, 1.0))
    checked_weights(weights, classes=3)


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 1.5), (0.5, 0.5), (0.0, 1.0)])
def test_no_record_counts_for_more_than_without_weights(weights: tuple[float, ...]) -> None:
    with pytest.raises(InvalidParameter, match="class_weights"):
        checked_weights(weights, classes=2)
