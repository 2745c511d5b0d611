"""Coins: exact at the bits that decide, right in distribution, and a rounded probability is
noticed.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from reticent.noise import SeededSampler
from reticent.noise.coins import coins


class _Words(SeededSampler):
    """Words that were written down beforehand; then those of the seed."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(0)
        self.given = words

    def words(self, count: int) -> np.ndarray:
        head, self.given = self.given[:count], self.given[count:]
        return np.concatenate([np.array(head, dtype=np.uint64), super().words(count - len(head))])


def test_the_first_sixteen_bits_decide_unless_they_are_equal() -> None:
    p = 0.15
    whole = int(Fraction(p) * 2**16)
    heads = [whole - 1, whole + 1, 0, 2**16 - 1]
    word = sum(head << (16 * place) for place, head in enumerate(heads))
    assert coins(4, probability=p, sampler=_Words([word])).tolist() == [True, False, True, False]


@pytest.mark.parametrize(("later", "shown"), [(0, True), (2**53 - 1, False)])
def test_equal_bits_are_settled_by_further_ones(later: int, shown: bool) -> None:
    p = 0.15
    whole = int(Fraction(p) * 2**16)
    assert 0 < Fraction(p) * 2**16 - whole < 1
    assert coins(1, probability=p, sampler=_Words([whole, later])).tolist() == [shown]


# False-alarm rate 1e-6 each; seeded, so a passing test stays passing.
@pytest.mark.parametrize("p", [0.15, 0.5, 1 - 2.0**-10, 3 * 2.0**-18, 2.0**-16 + 2.0**-18])
def test_the_share_of_heads_is_the_probability(p: float) -> None:
    tosses = 4_000_000
    heads = int(coins(tosses, probability=p, sampler=SeededSampler(1)).sum())
    assert stats.binomtest(heads, tosses, p).pvalue > 1e-6
