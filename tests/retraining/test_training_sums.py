"""Bounds on mean gradients against every batch that k changes can make."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from reticent.retraining.training_network import Factors
from reticent.retraining.training_sums import (
    Clip,
    Clipped,
    Removable,
    Smallest,
    block_sums,
    constant_entries,
    mean_bound,
)


def largest_mean(values: list[int], gamma: int, k: int, *, counting: str) -> Fraction:
    """The largest mean over all batches at distance k, by trying every set of removed records."""
    means = [Fraction(0)] if k >= len(values) and counting == "add-remove" else []
    for removed in range(1 if counting == "insert" else min(k, len(values)) + 1):
        added_ones = {
            "replace": range(k + 1),
            "insert": range(k + 1),
            "remove": range(1),
            "add-remove": range(k - removed, k - removed + 1),
        }
        for added in added_ones[counting]:
            for out in combinations(range(len(values)), removed):
                left = [value for index, value in enumerate(values) if index not in out]
                size = len(left) + added
                if size:
                    means.append(Fraction(sum(left) + added * gamma, size))
    return max(means)


def bounds(
    values: np.ndarray, clip: Clip, distances: np.ndarray, *, counting: str, blocks: int = 1
) -> list[float]:
    """Bounds at increasing distances, whose boxes are nested, from the upper ends of one row and
    column, shape (boxes, records), of which there may be one for all distances.
    """
    records = values.shape[1]
    total = values.astype(np.int64).sum(axis=1)[:, None, None]
    reach = np.abs(values).max(initial=0)[None, None].astype(float)
    fixed: Any = {"records": records, "counting": counting}
    smallest = Smallest.of_none(total, reach, distances, clip, upper=True, **fixed)
    parts = []
    for numbers in np.array_split(np.arange(records), blocks):
        block, one = values[:, numbers].astype(float), np.ones((1, len(numbers)))
        parts.append((Factors(block, block, one, one), numbers))
        smallest.add(parts[-1][0].box(0, 1), parts[-1][0].box(-1, 1), numbers)
    removable = Removable.of(smallest)
    moving = np.full((len(values), len(removable.moving)), np.nan)
    for part, numbers in parts:
        if len(numbers):
            removable.write(moving, part, numbers)
    ends = removable.listed(removable.with_moving(moving))
    return mean_bound(total, ends, distances, removable, **fixed)[:, 0, 0].tolist()


def bound(values: np.ndarray, gamma: int, k: int, *, counting: str) -> float:
    return bounds(values[None], Clip(gamma, gamma, 0), np.array([k]), counting=counting)[0]


@pytest.mark.parametrize("counting", ["add-remove", "replace", "remove", "insert"])
def test_bounds_are_the_exact_maximum(counting: str) -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        gamma = int(random.integers(1, 50))
        values = np.clip(random.integers(-60, 61, int(random.integers(1, 7))), -gamma, gamma)
        k = int(random.integers(0, 9 if counting != "replace" else 4))
        expected = largest_mean(values.tolist(), gamma, k, counting=counting)
        if k >= len(values) and k and counting != "insert":
            expected = Fraction(
                gamma
            )  # the bound gives up where a batch can be exchanged altogether
        assert bound(values, gamma, k, counting=counting) == float(expected)


def searched(values: np.ndarray, clip: Clip, k: int) -> float:
    """The bound by sorting all records and trying every number of removed ones, sums rounded up
    to coarse units.
    """
    ordered = sorted(int(value) for value in values)
    sums = [
        -(-sum(ordered[j:]) // 2**clip.shift) + (k - j) * -(-int(clip.above) // 2**clip.shift)
        for j in range(k + 1)
    ]
    return max(total / (len(values) + k - 2 * j) for j, total in enumerate(sums))


def nested_values(random: np.random.Generator, clip: Clip, boxes: int) -> np.ndarray:
    """Ends of 40 records over boxes that grow, with ties, with records at either end, or with one
    that lies low but over the last box.
    """
    values = random.integers(-100 * int(random.integers(1, 11)), int(random.integers(0, 1001)), 40)
    values[: int(random.integers(0, 41))] = -clip.below
    growth = random.integers(0, 1 + random.choice([0, 3, 300]), (boxes, 40))
    if random.random() < 0.2:
        values, growth[:, 0] = random.integers(0, 100, 40), 0
        values[0], growth[-1, 0] = -900, 1500
    grown = np.clip(values + np.cumsum(growth, axis=0), -clip.below, clip.above)
    return random.permutation(grown, axis=1)


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("blocks", [1, 3])
def test_shortcuts_never_change_a_bound(shift: int, blocks: int) -> None:
    """Whatever the smallest and the largest box tell, and however few records are looked at, the
    result is that of looking at all.
    """
    random = np.random.default_rng(1)
    removals = 0
    for _ in range(300):
        clip = Clip(1000 - int(random.integers(2)), 1000, shift)
        values = nested_values(random, clip, 4)
        distances = np.sort(random.integers(0, int(random.choice([5, 40])), 4))
        expected = [
            searched(ends, clip, k) for ends, k in zip(values, distances.tolist(), strict=True)
        ]
        found = bounds(values, clip, distances, counting="add-remove", blocks=blocks)
        assert found == expected
        kept = -(-values.sum(axis=1) // 2**shift) + distances * clip.coarse
        removals += sum(np.array(expected) > kept / (40 + distances))
    assert removals > 100


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_replacements_are_those_of_sorting_every_record(shift: int, blocks: int) -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        clip = Clip(1000 - int(random.integers(2)), 1000, shift)
        values = nested_values(random, clip, 4)
        distances = np.sort(random.integers(0, 45, 4))
        found = bounds(values, clip, distances, counting="replace", blocks=blocks)
        gamma = -(-1000 // 2**shift)
        expected = [
            max(
                (-(-int(np.sort(ends)[j:].sum()) // 2**shift) + k * gamma) / (40 + k - j)
                for j in range(k + 1)
            )
            if k < 40
            else gamma
            for ends, k in zip(values, distances.tolist(), strict=True)
        ]
        assert found == expected


@pytest.mark.parametrize("counting", ["add-remove", "replace"])
def test_rounded_bounds_nest_between_neighbours(counting: str) -> None:
    """Whether a record comes, goes or is replaced by one of another batch, in batches whose
    gradients lie within a coarse unit of gamma.
    """
    random = np.random.default_rng(9)
    distances = np.arange(8)
    for _ in range(300):
        clip = Clip(1024, 1024, 3)
        values = 1024 - random.integers(0, int(random.choice([2, 12, 40])), (1, 7))
        n = int(random.integers(7))
        fewer, more = (
            np.array(bounds(values[:, :size], clip, distances, counting=counting))
            for size in (n, n + 1)
        )
        assert (fewer[:-1] <= more[1:]).all()
        assert (more[:-1] <= fewer[1:]).all()


def product_range(
    rows: tuple[float, float], columns: tuple[float, float], gamma: float
) -> tuple[float, float]:
    products = [row * column for row in rows for column in columns]
    return float(np.clip(min(products), -gamma, gamma)), float(
        np.clip(max(products), -gamma, gamma)
    )


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
    around = Factors(low - (low > 0), high + 1, left, right if exact_columns else right + 1)
    sums = block_sums(factors, clip, Clipped.of(around, clip), rows=3)
    smallest = Smallest.of_none(
        sums[0],
        factors.reach(),
        np.array([30]),
        clip,
        upper=False,
        records=30,
        counting="remove",
    )
    smallest.add(factors, factors, np.arange(30))
    if exact_columns:
        constant, of_constant = constant_entries(factors, clip)
    for row in range(3):
        for column in range(2):
            ranges = np.array(
                [
                    product_range(
                        (low[row, i], high[row, i]), (left[column, i], right[column, i]), gamma
                    )
                    for i in range(30)
                ]
            )
            assert (sums[:, 0, row, column] * [-1, 1]).tolist() == ranges.sum(axis=0).tolist()
            assert sorted(-smallest.low[2 * row + column]) == sorted(ranges[:, 0])
            if exact_columns:
                chosen = ranges[constant[column]]
                assert (chosen[:, 0] == chosen[:, 1]).all()
                found = of_constant[:, 0, row, column] * [-1, 1]
                assert found.tolist() == chosen.sum(axis=0).tolist()
