"""The search by blocks against every pair, one by one, and the monotone ratios that its bounds
stand on.
"""

from __future__ import annotations

import numpy as np
import pytest

from reticent.accounting import winner_search
from reticent.accounting.winner_search import (
    TOLERANCE,
    largest_winner_divergence,
    winner_distributions,
)


def _table(sigma: float, box: int, between: bool) -> np.ndarray:
    """Who wins among u + N1, v + N2 and 0, from the joint distribution of both noises; shape (3,
    u, v), margins -box - 1 .. box + 1.
    """
    reach = int(10 * sigma) + box + 4
    noise = np.arange(-reach, reach + 1)
    distribution = np.exp(-0.5 * (noise / sigma) ** 2)
    distribution = np.outer(distribution, distribution) / distribution.sum() ** 2
    margins = np.arange(-box - 1, box + 2)
    found = np.empty((3, margins.size, margins.size))
    for row, u in enumerate(margins):
        for column, v in enumerate(margins):
            one, two = u + noise[:, None], v + noise[None, :]
            first = (one >= two) & (one >= 0)
            second = (two > one) & (two >= int(between))
            found[:, row, column] = (
                distribution[first].sum(),
                distribution[second].sum(),
                distribution[~first & ~second].sum(),
            )
    return found


@pytest.mark.parametrize("between", [False, True])
def test_tables_are_the_sums_over_both_noises(between: bool) -> None:
    box = 4
    table = _table(1.2, box, between)
    rows = winner_distributions(1.2, box, np.arange(-8, 9), between=between)
    for u in range(-box, box + 1):
        for v in range(-box, box + 1):
            here = rows[:, u - v + 8, u + box]
            assert here == pytest.approx(table[:, u + box + 1, v + box + 1], rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("sigma", [0.6, 2.0])
@pytest.mark.parametrize("between", [False, True])
def test_ratios_fall_with_the_first_margin_and_rise_with_the_second(
    sigma: float, between: bool
) -> None:
    box = 5
    rows = winner_distributions(sigma, box, np.arange(-2 * box, 2 * box + 3), between=between)
    margins = np.arange(-box, box + 1)
    u, v = margins[:, None], margins[None, :]
    base, moved = rows[:, u - v + 2 * box, u + box], rows[:, u - v + 2 + 2 * box, u + 1 + box]
    ratios = np.log(moved / base)
    assert np.all(np.diff(ratios, axis=1) <= 1e-10)
    assert np.all(np.diff(ratios, axis=2) >= -1e-10)
    for outcome, (with_u, with_v) in enumerate([(1, -1), (-1, 1), (-1, -1)]):
        assert np.all(with_u * np.diff(base[outcome], axis=0) >= -1e-15)
        assert np.all(with_v * np.diff(base[outcome], axis=1) >= -1e-15)


ORDERS = (2, 5, 7)


def _worst_pair(sigma: float, box: int, rate: float) -> np.ndarray:
    """Largest divergence of each order, pair by pair."""
    worst = np.zeros(3)
    margins = np.arange(-box, box + 1)
    u, v = margins[:, None], margins[None, :]
    for between in (False, True):
        rows = winner_distributions(sigma, box, np.arange(-2 * box, 2 * box + 3), between=between)
        distributions = [
            rows[:, u - v + 2 * box, u + box],
            rows[:, u - v + 2 + 2 * box, u + 1 + box],
        ]
        for base, other in (distributions, distributions[::-1]):
            mixed = (1 - rate) * base + rate * other
            for p, q in ((mixed, base), (base, mixed)):
                # E_Q[(P/Q)^a] - 1, a sum of terms that are not negative, so that small ones keep
                # their digits.
                gain = np.log(p / q)
                for index, a in enumerate(ORDERS):
                    excess = (q * (np.expm1(a * gain) - a * (p - q) / q)).sum(axis=0)
                    worst[index] = max(worst[index], np.log1p(excess.max()) / (a - 1))
    return worst


@pytest.mark.parametrize(
    ("sigma", "box", "rate"), [(1.0, 9, 0.3), (2.5, 20, 0.1), (2.5, 20, 1.0), (9.0, 60, 0.15)]
)
def test_no_pair_is_missed(sigma: float, box: int, rate: float) -> None:
    worst = _worst_pair(sigma, box, rate)
    found = largest_winner_divergence(sigma, box, rate, ORDERS)
    assert np.all(found >= worst * (1 - 1e-9))
    assert np.all(found <= worst * (1 + 2 * TOLERANCE))


@pytest.mark.parametrize(
    ("sigma", "box", "rate", "fine"),
    [(2.5, 20, 0.1, 2.0), (2.5, 20, 1.0, 0.4), (9.0, 60, 0.15, 8.0), (9.0, 60, 1.0, 1.0)],
)
def test_no_pair_is_missed_where_blocks_are_not_divided_down_to_pairs(
    sigma: float, box: int, rate: float, fine: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done beyond FINE_SIGMA, at noise so small that every pair can be tried."""
    monkeypatch.setattr(winner_search, "FINE_SIGMA", fine)
    worst = _worst_pair(sigma, box, rate)
    found = largest_winner_divergence.__wrapped__(sigma, box, rate, ORDERS)
    assert np.all(found > worst)


@pytest.mark.parametrize(("sigma", "side"), [(2.5, 2), (2.5, 8), (9.0, 2)])
@pytest.mark.parametrize("between", [False, True])
def test_a_block_is_bounded_by_no_less_than_each_of_its_pairs(
    sigma: float, side: int, between: bool
) -> None:
    box = 2 * side * round(3 * sigma / side) + side - 1  # whole blocks from -box - 1 on
    search = winner_search._Search(sigma, box, 0.3, np.array(ORDERS, dtype=float), between)
    starts = np.arange(-box, box - side + 2, side)
    blocks = np.stack(np.meshgrid(starts, starts, indexing="ij"), axis=-1).reshape(-1, 2)
    inside = np.stack(np.meshgrid(*[np.arange(side)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    pairs = (blocks[:, None, :] + inside).reshape(-1, 2)
    each, _ = search.bounds(pairs, 1)
    _, above = search.bounds(blocks, side)
    worst = each.reshape(len(ORDERS), len(blocks), -1).max(axis=2)
    assert np.all(above >= worst * (1 - 1e-9) - 1e-15)
