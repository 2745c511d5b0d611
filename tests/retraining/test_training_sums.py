"""Bounds on mean gradients against every batch that k changes can make."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from reticent.retraining.training_network import Factors
from reticent.retraining.training_sums import BlockSums, Clip, RecordEnds, block_sums, mean_bound


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


def record_ends(
    values: np.ndarray,
    clip: Clip,
    *,
    blocks: int = 1,
    least: float | None = None,
    count: bool = False,
) -> RecordEnds:
    """Upper ends of one row and column that are ``values``; of the sums over blocks only the
    least end may be known loosely.
    """
    parts, sums = [], []
    for block in np.array_split(values.astype(float)[None], blocks, axis=1):
        parts.append(
            Factors(block, block, np.ones((1, block.shape[1])), np.ones((1, block.shape[1])))
        )
        total, floored = int(block.sum()), int((block == -clip.below).sum()) if count else 0
        lowest = float(block.min(initial=clip.above)) if least is None else least
        sums.append(BlockSums(np.array([[total]]), np.array([[floored]]), np.array([[lowest]])))
    return RecordEnds(parts, sums, clip, upper=True)


def bound(values: np.ndarray, gamma: int, k: int, *, counting: str) -> float:
    ends = record_ends(values, Clip(gamma, gamma, 0))
    return float(mean_bound(ends, np.array([k]), counting=counting)[0, 0])


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


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("blocks", [1, 3])
def test_shortcuts_never_change_a_bound(shift: int, blocks: int) -> None:
    """Whatever is known of single gradients, and however few are looked at, the result is that
    of looking at all.
    """
    random = np.random.default_rng(1)
    removals = 0
    for _ in range(150):
        clip = Clip(1000 - int(random.integers(2)), 1000, shift)
        values = random.integers(
            -100 * int(random.integers(1, 11)), int(random.integers(0, 1001)), 40
        )
        values[: int(random.integers(0, 41))] = -clip.below
        values = np.clip(values, -clip.below, clip.above)
        random.shuffle(values)
        k = int(random.integers(1, 40))
        expected = searched(values, clip, k)
        removals += expected > (-(-values.sum() // 2**shift) + k * clip.coarse) / (40 + k)
        for least, count in ((None, False), (-1000.0, False), (None, True), (-1000.0, True)):
            ends = record_ends(values, clip, blocks=blocks, least=least, count=count)
            assert mean_bound(ends, np.array([k]), counting="add-remove")[0, 0] == expected
    assert removals > 15


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_replacements_are_those_of_sorting_every_record(shift: int, blocks: int) -> None:
    """Several distances at once, ties, records at either end of the clip, and blocks smaller
    than the distance.
    """
    random = np.random.default_rng(5)
    for _ in range(200):
        clip = Clip(1000 - int(random.integers(2)), 1000, shift)
        values = random.integers(-1000, 1001, 50) // int(random.integers(1, 400))
        values[: int(random.integers(0, 51))] = -clip.below
        values = np.clip(values, -clip.below, clip.above).astype(float)
        random.shuffle(values)
        distances = random.integers(0, 55, 4)
        parts = [
            Factors(rows, rows, np.ones((1, rows.shape[1])), np.ones((1, rows.shape[1])))
            for rows in np.array_split(np.repeat(values[None], 4, axis=0), blocks, axis=1)
        ]
        sums = [
            BlockSums(
                np.full((4, 1), int(values.sum())),
                np.zeros((4, 1), np.int64),
                np.full((4, 1), -1000.0),
            )
        ]
        ends = RecordEnds(parts, sums, clip, upper=True)
        found = mean_bound(ends, distances, counting="replace")[:, 0]
        entries = sorted(-(-int(value) // 2**shift) for value in values)
        gamma = -(-1000 // 2**shift)
        expected = [
            (sum(entries[k:]) + k * gamma) / 50 if k < 50 else gamma for k in distances.tolist()
        ]
        assert found.tolist() == expected


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
    sums = block_sums(factors, clip)
    for row in range(3):
        for column in range(2):
            ranges = [
                product_range(
                    (low[row, i], high[row, i]), (left[column, i], right[column, i]), gamma
                )
                for i in range(30)
            ]
            assert -sums[0].total[row, column] == sum(least for least, _ in ranges)
            assert sums[1].total[row, column] == sum(most for _, most in ranges)
            assert sums[0].floored[row, column] <= sum(least == gamma for least, _ in ranges)
            assert sums[1].floored[row, column] <= sum(most == -gamma for _, most in ranges)
            assert sums[0].least[row, column] <= min(-least for least, _ in ranges)
            assert sums[1].least[row, column] <= min(most for _, most in ranges)
            (chosen,) = RecordEnds([factors], [sums[0]], clip, upper=False).clipped(
                np.array([row]), column
            )
            assert (-chosen[0]).tolist() == [least for least, _ in ranges]
