"""Bounds on mean gradients against every batch that k changes can make."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from reticent.certify.training_network import Factors
from reticent.certify.training_sums import BlockSums, Clip, RecordEnds, block_sums, mean_bound


def largest_mean(values: list[int], gamma: int, k: int, *, replace: bool) -> Fraction:
    """The largest mean over all batches at distance k, by trying every set of removed records."""
    means = [Fraction(0)] if k >= len(values) and not replace else []
    for removed in range(min(k, len(values)) + 1):
        for added in range(k + 1) if replace else [k - removed]:
            for out in combinations(range(len(values)), removed):
                left = [value for index, value in enumerate(values) if index not in out]
                size = len(left) + added
                if size:
                    means.append(Fraction(sum(left) + added * gamma, size))
    return max(means)


def bound(values: np.ndarray, gamma: int, k: int, *, replace: bool, largest: float | None = None, count: bool = False) -> float:
    rows = values[None].astype(float)
    factors = Factors(rows, rows, np.ones((1, len(values))), np.ones((1, len(values))))
    clip = Clip(gamma, gamma, 0)
    floored = np.array([[int((values == -gamma).sum()) if count else 0]])
    sums = BlockSums(np.array([[values.sum()]], dtype=np.int64), floored)
    reach = np.array([[float(np.abs(values).max(initial=0)) if largest is None else largest]])
    found = mean_bound(
        sums,
        reach,
        np.array([k]),
        len(values),
        RecordEnds([factors], clip, upper=True),
        replace=replace,
    )
    return float(found[0, 0])


@pytest.mark.parametrize("replace", [False, True])
def test_bounds_are_the_exact_maximum(replace: bool) -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        gamma = int(random.integers(1, 50))
        values = np.clip(random.integers(-60, 61, int(random.integers(1, 7))), -gamma, gamma)
        k = int(random.integers(0, 9 if not replace else 4))
        expected = largest_mean(values.tolist(), gamma, k, replace=replace)
        if k >= len(values) and k:
            expected = Fraction(gamma)  # the bound gives up where a batch can be exchanged altogether
        assert bound(values, gamma, k, replace=replace) == float(expected)


def test_shortcuts_never_change_a_bound() -> None:
    """With the weakest knowledge of single gradients every maximum is searched; the result is the same."""
    random = np.random.default_rng(1)
    for _ in range(200):
        gamma = 1000
        values = random.integers(-100 * int(random.integers(1, 11)), 1001, 40)
        k = int(random.integers(1, 20))
        values[: int(random.integers(0, 41))] = -gamma
        searched = bound(values, gamma, k, replace=False, largest=1e9)
        assert bound(values, gamma, k, replace=False) == searched
        assert bound(values, gamma, k, replace=False, largest=1e9, count=True) == searched


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("shift", [0, 3])
def test_neighbours_bounds_nest_whatever_the_rounding(replace: bool, shift: int) -> None:
    random = np.random.default_rng(2)
    for _ in range(500):
        gamma = int(random.integers(1, 100))
        values = random.integers(-gamma, gamma + 1, int(random.integers(1, 12))).astype(float)
        smaller = np.maximum(values - random.integers(0, 5, len(values)), -gamma)  # the neighbour's boxes are smaller
        if replace:
            smaller[random.integers(len(values))] = random.integers(-gamma, gamma + 1)
        elif random.random() < 0.5:
            smaller = np.append(smaller, random.integers(-gamma, gamma + 1))
        else:
            smaller = np.delete(smaller, random.integers(len(smaller)))
        bounds = []
        for data, first in ((values, 0), (smaller, 0)):
            clip = Clip(gamma, gamma, shift)
            distances = np.arange(first, first + 6)
            rows = np.repeat(data[None], 6, axis=0)
            factors = Factors(rows, rows, np.ones((1, len(data))), np.ones((1, len(data))))
            bounds.append(
                mean_bound(
                    BlockSums(np.full((6, 1), int(data.sum()), dtype=np.int64), np.zeros((6, 1), np.int64)),
                    np.full((6, 1), float(gamma)),
                    distances,
                    len(data),
                    RecordEnds([factors], clip, upper=True),
                    replace=replace,
                )[:, 0]
            )
        assert (bounds[1][:-1] <= bounds[0][1:]).all()


def product_range(rows: tuple[float, float], columns: tuple[float, float], gamma: float) -> tuple[float, float]:
    products = [row * column for row in rows for column in columns]
    return float(np.clip(min(products), -gamma, gamma)), float(np.clip(max(products), -gamma, gamma))


@pytest.mark.parametrize("gamma", [10.0, 400.0, 1e9])
@pytest.mark.parametrize("exact_columns", [True, False])
def test_sums_of_clipped_products_are_exact(gamma: float, exact_columns: bool) -> None:
    random = np.random.default_rng(3)
    low = random.integers(-20, 21, (3, 30)).astype(float)
    high = low + random.integers(0, 9, (3, 30))
    if exact_columns:
        left = right = random.integers(-20, 21, (2, 30)).astype(float)
    else:
        low, high = np.abs(low), np.abs(low) + 5
        left = random.integers(-20, 21, (2, 30)).astype(float)
        right = left + random.integers(0, 9, (2, 30))
    factors, clip = Factors(low, high, left, right), Clip(gamma, gamma, 0)
    sums = block_sums(factors, clip)
    for row in range(3):
        for column in range(2):
            ranges = [product_range((low[row, i], high[row, i]), (left[column, i], right[column, i]), gamma) for i in range(30)]
            assert -sums[0].total[row, column] == sum(least for least, _ in ranges)
            assert sums[1].total[row, column] == sum(most for _, most in ranges)
            assert sums[0].floored[row, column] <= sum(least == gamma for least, _ in ranges)
            assert sums[1].floored[row, column] <= sum(most == -gamma for _, most in ranges)
            chosen = RecordEnds([factors], clip, upper=False).all(np.array([row]), column)
            assert (-chosen[0]).tolist() == [least for least, _ in ranges]
