"""Keys and buckets: the same for a record whatever others there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent.core.errors import InvalidInput
from reticent.retraining import record_buckets, record_keys


def test_a_record_keeps_its_bucket_when_others_come_and_go() -> None:
    random = np.random.default_rng(0)
    X, labels = random.normal(size=(50, 3)), random.integers(0, 2, 50)
    all_ = record_buckets(record_keys(X, labels), buckets=7, purpose="batch")
    kept = random.permutation(50)[:20]
    assert (
        record_buckets(record_keys(X[kept], labels[kept]), buckets=7, purpose="batch") == all_[kept]
    ).all()


def test_buckets_are_even_and_purposes_unrelated() -> None:
    """Chi-squared tests; false-alarm rate 1e-6 each."""
    keys = [b"%d" % index for index in range(20_000)]
    batch, member = (
        record_buckets(keys, buckets=5, purpose=purpose) for purpose in ("batch", "member")
    )
    assert stats.chisquare(np.bincount(batch, minlength=5)).pvalue > 1e-6
    assert stats.chi2_contingency(np.histogram2d(batch, member, bins=5)[0]).pvalue > 1e-6


def test_content_counts_label_and_every_feature_but_not_the_sign_of_zero() -> None:
    keys = record_keys([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0], [0.0, 2.0]], [0, 0, 1, 0])
    assert keys[0] == keys[1]
    assert len({keys[0], keys[2], keys[3]}) == 3


def test_no_records() -> None:
    assert record_buckets(record_keys(np.zeros((0, 2)), []), buckets=3, purpose="batch").shape == (
        0,
    )


@pytest.mark.parametrize("keys", [["a"], "ab", [1.5, 2.5], [True, False], [None, None]])
def test_keys_of_another_kind_are_refused(keys: Any) -> None:
    with pytest.raises(InvalidInput, match="identities: expected"):
        record_keys([[1.0], [2.0]], [0, 1], keys)
