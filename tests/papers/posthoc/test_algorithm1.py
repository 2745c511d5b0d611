"""The page on Table 1: its attack is the exact one, and its page counts what it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.posthoc.algorithm1 import attack


@pytest.mark.parametrize("shift", [0.5, 3.0])
def test_the_attack_has_the_rates_of_the_best_test(shift) -> None:
    # One coordinate: the ratio favours the moved point beyond half of the way.
    true, false = attack(np.array([shift]), 0)
    wrong = 0.5 * math.exp(-shift / 2)
    # 200,000 draws: five standard errors are below .006, passed in all but 1 of a million runs.
    assert false == pytest.approx(wrong, abs=0.006)
    assert true == pytest.approx(1 - wrong, abs=0.006)
