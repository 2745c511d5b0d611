"""Geometric and Laplace draws: bit for bit those of real comparisons, every value as often as it
must be.

The statistical tests are seeded, so a passing test stays passing; each has a false-alarm rate of
1e-6 or less and is shown to reject a fault.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from reticent.noise.digits import heads_from
from reticent.noise.expansions import GeometricShares
from reticent.noise.geometric import SATURATION, GeometricDigits
from tests.noise.words import Aimed, Listed, compared, laplace_law, p_value, seeded

ALARM = 1e-6
WIDE = 1.3 * 2**20


def shares(digits: GeometricDigits, scale: float) -> list[GeometricShares]:
    """The distributions of all groups, from the scale and the places of their digits."""
    last = len(digits.groups) - 1
    rates = [2**start / Fraction(scale) for start, _ in digits.groups]
    return [
        GeometricShares(
            rate.numerator,
            rate.denominator,
            size=2 ** (end - start),
            signed=group == 0,
            open=group == last,
        )
        for group, (rate, (start, end)) in enumerate(zip(rates, digits.groups, strict=True))
    ]


def slow_laplace(
    scale: float,
    groups: list[GeometricShares],
    places: list[tuple[int, int]],
    count: int,
    words,
):
    """What the docstring says, element by element, in Python integers."""
    heads = heads_from(words, len(groups) * count)[0].reshape(len(groups), count)
    symbols = [compared(group, part, words) for group, part in zip(groups, heads, strict=True)]
    size = groups[-1].size
    leading, pending = list(symbols[-1]), [i for i in range(count) if symbols[-1][i] == size]
    while pending:
        again = compared(groups[-1], heads_from(words, len(pending))[0], words)
        for place, value in zip(pending, again, strict=True):
            leading[place] += value
        pending = [place for place, value in zip(pending, again, strict=True) if value == size]
    answers = []
    for i in range(count):
        negative, k = divmod(symbols[0][i], groups[0].size)
        for (start, _), group in zip(places[1:-1], symbols[1:-1], strict=True):
            k += group[i] << start
        k += leading[i] << places[-1][0]
        answers.append(-k - 1 if negative else k)
    return answers


@pytest.mark.parametrize("scale", [2.0**-3, 0.7, 3.0, 100.1, WIDE])
@pytest.mark.parametrize("seed", range(3))
def test_draws_are_those_of_real_comparisons(scale: float, seed: int) -> None:
    digits = GeometricDigits(scale)
    groups = shares(digits, scale)
    sources = [Aimed(groups, seed), Aimed(groups, seed)]
    found = digits.laplace(60, sources[0]).tolist()
    assert found == slow_laplace(scale, groups, digits.groups, 60, sources[1])
    assert sources[0].asked == sources[1].asked


@pytest.mark.parametrize(
    "scale", [5e-324, 1e-3, 2.0**-3, 0.25, 1.0, 2.0, 40.0, WIDE, 2.0**30 / 3, 2.0**50]
)
def test_groups_cover_the_digits_once_and_reach_four_times_the_scale(scale: float) -> None:
    groups = GeometricDigits(scale).groups
    assert groups[0][0] == 0
    assert all(earlier[1] == later[0] for earlier, later in itertools.pairwise(groups))
    assert all(0 <= end - start <= 8 for start, end in groups)
    assert groups[0][1] - groups[0][0] <= 7
    assert 4 * scale <= 2.0 ** groups[-1][1] < max(8 * scale, 2)


@pytest.mark.parametrize("scale", [2.0**-3, 0.3, 1.0, 7.5, 30.0])
def test_probabilities_of_single_values(scale: float) -> None:
    digits = GeometricDigits(scale)
    geometric, laplace = digits.geometric(500_000, seeded(4)), digits.laplace(500_000, seeded(5))
    for factor, fits in ((1.0, True), (1.05, False)):
        q = np.exp(-1 / (factor * scale))
        assert (p_value(geometric, lambda k, q=q: (1 - q) * q**k * (k >= 0)) > ALARM) == fits
        assert (p_value(laplace, laplace_law(factor * scale)) > ALARM) == fits


@pytest.mark.parametrize("scale", [WIDE, 2.0**35 + 1, 2.0**50])
def test_wide_draws_have_the_continuous_shape_and_fit_int64(scale: float) -> None:
    draws = GeometricDigits(scale).laplace(100_000, seeded(6)) / scale
    assert stats.kstest(draws, stats.laplace.cdf).pvalue > ALARM
    for factor in (0.92, 1.08):
        assert stats.kstest(draws, stats.laplace(scale=factor).cdf).pvalue < ALARM


def test_the_tail_has_no_end_and_the_largest_numbers_stay_in_int64() -> None:
    digits = GeometricDigits(2.0**50)
    groups, (start, end) = len(digits.groups), digits.groups[-1]
    ones = 2**64 - 1
    rounds = 3
    # All heads are ones: every lower digit is 1, the leading group is full and drawn again until a
    # zero comes.
    heads = [ones] * -(-groups // 4)
    script = [*heads, *[ones] * (rounds - 1), 0]
    assert digits.geometric(1, Listed(script)).tolist() == [rounds * 2**end + 2**start - 1]
    far = 2**11
    for draw in (digits.geometric, digits.laplace):
        value = int(draw(1, Listed([*heads, *[ones] * far, 0]))[0])
        assert SATURATION <= (value if value >= 0 else -1 - value) <= SATURATION + 2**53
    assert digits.laplace(1, Listed([*heads, *[ones] * far, 0]))[0] < 0


def test_a_scale_near_zero_gives_zeros_and_a_fair_tail() -> None:
    digits = GeometricDigits(5e-324)
    assert not digits.laplace(100_000, seeded(7)).any()
    # The threshold begins with 2^1074 ones, so these words decide nothing until a zero comes.
    ones = 2**64 - 1
    assert digits.geometric(1, Listed([ones, ones, ones, ones - 1, ones, ones - 1])).tolist() == [0]


def test_words_that_were_used_are_overwritten() -> None:
    given, source = [], seeded(8)

    def words(count: int) -> np.ndarray:
        given.append(source(count))
        return given[-1]

    GeometricDigits(WIDE).laplace(20_000, words)
    assert sum(len(block) for block in given) > 15_000
    assert not any(block.any() for block in given)


@pytest.mark.parametrize("count", [0, 1, 3, 2**14, 2**14 + 1])
def test_counts_at_the_ends_of_blocks(count: int) -> None:
    draws = GeometricDigits(100.0).laplace(count, seeded(9))
    assert draws.shape == (count,)
    assert draws.dtype == np.int64
