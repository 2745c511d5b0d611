"""Whole shares: the rational below e^epsilon against mpmath, the check against brute force."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.core.errors import InvalidInput
from reticent.grids.lattice import Lattice
from reticent.grids.shares import WHOLE, check_shares, excess, exponential_below, factor_below


def grid(shape, reach=1) -> Lattice:
    return Lattice(
        exponent=0,
        lower=(0,) * len(shape),
        shape=shape,
        side=1,
        reach=reach,
        coordinates=tuple(range(len(shape))),
        dimension=len(shape),
    )


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 7.5, 21.9, 40.0])
def test_the_rational_lies_just_below_the_exponential(epsilon: float) -> None:
    found = exponential_below(epsilon)
    with mpmath.workdps(80):
        true = mpmath.e ** mpmath.mpf(min(epsilon, 23.0))
        value = mpmath.mpf(found.numerator) / found.denominator
        assert 0 <= (true - value) / true < mpmath.mpf(2) ** -100


@settings(max_examples=300, deadline=None)
@given(st.floats(1e-12, 40.0))
def test_factor_is_just_below_the_exponential(epsilon) -> None:
    factor = factor_below(epsilon)
    assert 0 <= factor.shift <= 31
    assert 0 < factor.numerator < 2**32
    with mpmath.workdps(60):
        exact = mpmath.exp(mpmath.mpf(epsilon))
        value = mpmath.mpf(factor.numerator) / 2**factor.shift
        assert value <= exact
        if factor.numerator < WHOLE - 1:
            assert mpmath.mpf(factor.numerator + 1) / 2**factor.shift > exact * (1 - 2**-60)


def brute(low, high, lattice: Lattice, epsilon: float) -> int:
    """Entries that break the condition, in exact fractions, over all touching pairs."""
    factor = factor_below(epsilon)
    bound = Fraction(factor.numerator, 2**factor.shift)
    index = np.stack(np.unravel_index(np.arange(lattice.size), lattice.shape), axis=1)
    broken = 0
    for row in range(len(low)):
        for cell in range(lattice.size):
            near = np.flatnonzero(np.abs(index - index[cell]).max(axis=1) <= lattice.reach)
            largest = max(int(high[row, other]) for other in near)
            entry = int(low[row, cell])
            broken += largest > bound * entry or entry == 0 or entry > int(high[row, cell])
    return broken


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 2, 3)])
@pytest.mark.parametrize("reach", [1, 2])
@pytest.mark.parametrize("epsilon", [0.3, 3.0, 30.0])
def test_check_is_that_of_brute_force(shape, reach, epsilon) -> None:
    lattice = grid(shape, reach)
    rng = np.random.default_rng(0)
    total = 0
    for _ in range(20):
        logs = rng.normal(size=(3, lattice.size)) * epsilon / 3
        low = np.minimum(np.exp(logs) * 2**24, WHOLE - 1).astype(np.uint32)
        high = low + rng.integers(0, 2, low.shape).astype(np.uint32)
        expected = brute(low, high, lattice, epsilon)
        assert excess(low, high, lattice=lattice, epsilon=epsilon) == expected
        total += expected
    assert total > 0 or epsilon == 30.0


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 5.0, 10.0, 22.0])
def test_one_unit_too_many_is_found(epsilon) -> None:
    """The largest entry that the factor allows passes, and one more does not."""
    lattice = grid((2,))
    factor = factor_below(epsilon)
    low = 1 if epsilon > 20 else 1000
    most = min(low * factor.numerator >> factor.shift, WHOLE - 2)
    for extra, broken in ((0, 0), (1, 1)):
        shares = np.array([[low, most + extra]], dtype=np.uint32)
        assert excess(shares, shares, lattice=lattice, epsilon=epsilon) == broken


def test_zeros_and_crossed_ends_are_found() -> None:
    lattice = grid((2,))
    even = np.full((1, 2), 5, dtype=np.uint32)
    assert excess(even * 0, even * 0, lattice=lattice, epsilon=1.0) == 2
    assert excess(even + 1, even, lattice=lattice, epsilon=1.0) == 2


def test_message_names_what_and_how_many() -> None:
    shares = np.array([[1, 100]], dtype=np.uint32)
    with pytest.raises(InvalidInput, match=r"table: 1 entries.*epsilon=1\)"):
        check_shares(shares, shares, lattice=grid((2,)), epsilon=1.0, what="table")
    with pytest.raises(InvalidInput, match="uint32"):
        excess(shares.astype(float), shares, lattice=grid((2,)), epsilon=1.0)
