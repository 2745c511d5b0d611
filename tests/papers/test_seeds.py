"""Means and standard errors over seeds, against numpy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.seeds import combined


def test_numbers_lists_words_and_missing_keys() -> None:
    runs = [
        {"a": 1.0, "curve": [1.0, 2.0], "inner": {"mechanism": "code"}, "late": 5},
        {"a": 2.0, "curve": [3.0, 2.0], "inner": {"mechanism": "k-norm"}},
        {"a": 6.0, "curve": [5.0, 2.0], "inner": {"mechanism": "code"}},
    ]
    means, errors = combined(runs)
    assert means == {
        "a": 3.0,
        "curve": [3.0, 2.0],
        "inner": {"mechanism": "code or k-norm"},
        "late": 5.0,
    }
    assert errors["a"] == pytest.approx(np.std([1, 2, 6], ddof=1) / math.sqrt(3))
    assert errors["curve"] == pytest.approx([2 / math.sqrt(3), 0.0])
    assert math.isnan(errors["late"])
