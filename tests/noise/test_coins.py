"""Coins of given doubles, of enclosed probabilities and of one for all: the digits that decide, how
many words that takes, and the share of heads.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from reticent.noise import SeededSampler
from reticent.noise.coins import coins
from reticent.noise.digits import double_coins, enclosed_coins
from reticent.noise.expansions import Quotient
from tests.noise.words import Listed, seeded

ALARM = 1e-6
ONES = 2**64 - 1


CHANCES = [0.3, 2.0**-16, 1 - 2.0**-53, 1e-5, 3e-30, 5e-324, 1e-300, 0.5 + 2.0**-17]


@pytest.mark.parametrize("chance", CHANCES)
def test_a_coin_compares_digits_until_they_differ(chance: float) -> None:
    exact = Fraction(chance)
    for words in range(1, 20):
        bits = 16 + 64 * (words - 1)
        digits = int(exact * 2**bits)
        parts = [
            digits >> 64 * (words - 1),
            *[digits >> 64 * place & ONES for place in range(words - 2, -1, -1)],
        ]
        if digits:
            # One less in the last place: below the probability.
            script = [*parts[:-1], parts[-1] - 1]
            if parts[-1] > 0:
                assert double_coins(np.array([chance]), Listed(script)).all()
        if parts[-1] < (2**16 - 1 if words == 1 else ONES):
            assert not double_coins(np.array([chance]), Listed([*parts[:-1], parts[-1] + 1])).any()
        if exact * 2**bits == digits:
            break
    else:
        pytest.fail("the probability has more digits than were looked at")


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_a_uniform_number_that_equals_the_probability_is_not_below_it(chance: float) -> None:
    head = min(int(chance * 2**16), 2**16 - 1)
    shown = double_coins(np.array([chance]), Listed([head, 0]))
    assert shown.all() == (chance == 1.0)


@pytest.mark.parametrize("head", [0, 1, 2**15, 2**16 - 1])
def test_the_number_of_words_does_not_depend_on_the_probability(head: int) -> None:
    """For a head h, exactly the probabilities of one cell take a second word; each has its cell,
    also 0 and 1.
    """
    chances = np.array([0.0, 2.0**-16, 0.5, 1 - 2.0**-16, 1.0])
    cells = [0, 1, 2**15, 2**16 - 1, 2**16 - 1]
    for chance, cell in zip(chances, cells, strict=True):
        source = Listed([head, 12345])
        double_coins(np.array([chance]), source)
        assert len(source.left) == (0 if cell == head else 1)


@pytest.mark.parametrize("chance", [0.9, 0.3, 0.01, 3e-4, 2.0**-16 + 2.0**-18])
def test_rates(chance: float) -> None:
    runs = 2_000_000
    shown = int(double_coins(np.full(runs, chance), seeded(1)).sum())
    assert stats.binomtest(shown, runs, chance).pvalue > ALARM
    wrong = int(
        double_coins(np.full(runs, np.floor(chance * 2**16) / 2**16 + 2.0**-8), seeded(1)).sum()
    )
    assert stats.binomtest(wrong, runs, chance).pvalue < ALARM


@pytest.mark.parametrize("off", [-1.0, 0.0, 1.0])
def test_enclosed_coins_are_exact_however_the_enclosure_lies(off: float) -> None:
    """The exact probability is 1/3, the stated one off by up to the error; every head is tried,
    and both further words.
    """
    error = 2.0**-30
    heads = np.arange(2**16, dtype=np.uint16)
    third = Quotient(1, 3)
    fives = 0x5555555555555555
    for further, below in ((fives - 1, True), (fives + 1, False)):
        source = Listed([*heads.view(np.uint64).tolist(), further])
        shown = enclosed_coins(
            np.full(2**16, 1 / 3 + off * (error - 2.0**-45)), error, lambda place: third, source
        )
        assert shown.tolist() == [
            head < 0x5555 or (head == 0x5555 and below) for head in range(2**16)
        ]


def test_certain_and_impossible_coins() -> None:
    chances = np.array([0.0, 0.0, 1.0, 1.0])
    heads = int(np.array([0, 2**16 - 1, 0, 2**16 - 1], dtype=np.uint16).view(np.uint64)[0])
    shown = enclosed_coins(
        chances, 2.0**-40, lambda place: Quotient(int(chances[place]), 1), Listed([heads, ONES])
    )
    assert shown.tolist() == [False, False, True, True]


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
