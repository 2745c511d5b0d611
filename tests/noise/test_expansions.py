"""Digits of thresholds against mpmath at several hundred bits; enclosures never exclude what
they enclose.
"""

from __future__ import annotations

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.noise.expansions import Exponential, GeometricShares, Quotient, exponential_bounds
from tests.noise.words import BITS, Listed, thresholds


@given(st.integers(0, 2**60), st.integers(1, 2**60), st.integers(1, 200))
def test_bounds_lie_on_either_side_and_close_together(
    numerator: int, denominator: int, bits: int
) -> None:
    low, high = exponential_bounds(numerator, denominator, bits)
    with mpmath.workprec(600):
        value = mpmath.exp(-mpmath.mpf(numerator) / denominator) * 2**bits
        assert low == value == high if numerator == 0 else low < value < high
    assert high - low <= 2


@pytest.mark.parametrize(
    "exponent", [(1, 1), (1, 2**50), (1, 2**300), (3, 2), (1000, 7), (10**6, 1)]
)
@pytest.mark.parametrize("bits", [1, 16, 64, 200])
def test_digits_of_exponentials(exponent: tuple[int, int], bits: int) -> None:
    with mpmath.workprec(1000):
        value = mpmath.exp(-mpmath.mpf(exponent[0]) / exponent[1])
        assert Exponential(*exponent).floors(bits) == [int(mpmath.floor(value * 2**bits))]


def test_an_exponent_of_zero_is_the_number_one() -> None:
    assert Exponential(0, 5).floors(16) == [2**16]


DISTRIBUTIONS = [
    GeometricShares(1, 1, size=2),
    GeometricShares(1, 3 * 2**20, size=128),
    GeometricShares(1, 2**50, size=128, signed=True),
    GeometricShares(8, 1, size=1, signed=True),
    GeometricShares(2, 5, size=4, signed=True),
    GeometricShares(3, 128, size=256, open=True),
    GeometricShares(1, 2**50, size=8, open=True),
    GeometricShares(500, 1, size=2, open=True),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("bits", [8, 64, 320])
def test_digits_of_partial_sums(distribution: GeometricShares, bits: int) -> None:
    with mpmath.workprec(BITS):
        assert distribution.floors(bits) == [
            int(mpmath.floor(t * 2**bits)) for t in thresholds(distribution)
        ]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_enclosures_of_partial_sums_are_directed(distribution: GeometricShares) -> None:
    with mpmath.workprec(BITS):
        for precision in (20, 96):
            for (low, high), threshold in zip(
                distribution.enclosures(precision),
                thresholds(distribution),
                strict=True,
            ):
                assert low < threshold * 2**precision < high


def test_digits_that_the_first_precision_leaves_open_are_settled_by_a_second() -> None:
    # exp(-x) for x = 2^-100 begins with a hundred ones: its enclosure at 96 bits ends on both sides
    # of 1.
    distribution = Exponential(1, 2**100)
    low, high = distribution.enclosures(96)[0]
    assert high >> 32 != low >> 32
    assert distribution.floors(64) == [2**64 - 1]


def test_a_quotient_has_the_digits_of_long_division() -> None:
    assert Quotient(1, 3).floors(8) == [0b01010101]
    assert Quotient(5, 5).floors(3) == [8]


def test_settling_compares_digit_by_digit() -> None:
    third = Quotient(1, 3)
    assert third.settle(0x5554, 16, Listed([])) == 0
    assert third.settle(0x5556, 16, Listed([])) == 1
    fives = 0x5555555555555555
    assert third.settle(0x5555, 16, Listed([fives - 1])) == 0
    assert third.settle(0x5555, 16, Listed([fives + 1])) == 1
    assert third.settle(0x5555, 16, Listed([fives, fives, 0])) == 0


def test_settling_among_several_thresholds() -> None:
    distribution = GeometricShares(
        500, 1, size=2, open=True
    )  # both thresholds begin with more than 700 ones
    ones = 2**64 - 1
    assert distribution.settle(2**16 - 1, 16, Listed([0])) == 0
    assert distribution.settle(2**16 - 1, 16, Listed([ones] * 30)) == 2
    first = distribution.floors(16 + 12 * 64)[0]
    words = [first >> 64 * place & ones for place in range(11, -1, -1)]
    assert distribution.settle(2**16 - 1, 16, Listed([*words[:-1], words[-1] + 1])) == 1
    assert distribution.settle(2**16 - 1, 16, Listed([*words[:-1], words[-1] - 1])) == 0
