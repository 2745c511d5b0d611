"""Who is near a query, unit by unit, and what outlives forgetting."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.accounting import IndividualFilter
from reticent.systems.private_knn.held_records import HeldRecords


def _held(points, labels, keys) -> HeldRecords:
    held = HeldRecords(IndividualFilter(cap=10), dimension=1, by_person=keys is not None)
    held.insert([np.array(points, dtype=np.int16)[:, None]], np.array(labels), keys)
    return held


def _near(held: HeldRecords, limit: int) -> list[tuple[int, int, int]]:
    [(numbers, squared, labels)] = held.near(np.zeros((1, 1), dtype=np.int16), np.array([limit]))
    return sorted(zip(numbers.tolist(), squared.tolist(), labels.tolist(), strict=True))


def test_every_record_votes_where_there_are_no_keys() -> None:
    assert _near(_held([1, 2, 2, 5], [0, 1, 1, 0], None), 25) == [(0, 1, 0), (1, 4, 1), (2, 4, 1)]


def test_of_a_unit_only_the_nearest_votes_ties_by_its_own_labels() -> None:
    held = _held([3, -2, 2, 1], [0, 1, 0, 1], ["a", "a", "a", "b"])
    assert _near(held, 25) == [(0, 4, 0), (1, 1, 1)]


@pytest.mark.parametrize("seed", range(10))
def test_another_unit_changes_nobody_elses_vote(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, labels = rng.integers(-4, 5, size=30), rng.integers(0, 3, size=30)
    keys = rng.integers(0, 8, size=30)
    kept = keys != 7
    whole = _held(points, labels, keys.tolist())
    part = _held(points[kept], labels[kept], keys[kept].tolist())
    order = [list(dict.fromkeys(some.tolist())) for some in (keys, keys[kept])]
    votes = [
        {order[index][number]: rest for number, *rest in _near(held, 10)}
        for index, held in enumerate((whole, part))
    ]
    votes[0].pop(7, None)
    assert votes[0] == votes[1]


def test_forgetting_is_immediate_and_spending_stays() -> None:
    held = _held([1, 2], [0, 1], ["a", "b"])
    assert held.filter.admit(np.array([0]), np.array([7])).tolist() == [True]
    assert (held.forget("a"), held.forget("a"), held.forget("nobody")) == (1, 0, 0)
    assert _near(held, 25) == [(1, 4, 1)]
    held.insert([np.array([[1]], dtype=np.int16)], np.array([1]), ["a"])
    assert _near(held, 25) == [(0, 1, 1), (1, 4, 1)]
    assert held.filter.room(np.array([0])).tolist() == [3]
    assert len(held.filter) == 2


def test_anew_is_the_same_records_with_nothing_spent() -> None:
    held = _held([1, 2, 3], [0, 1, 1], ["a", "b", "a"])
    held.filter.admit(np.array([0, 1]), np.array([7, 8]))
    held.forget("b")
    copy = held.anew(IndividualFilter(cap=10))
    assert [rest for _, *rest in _near(copy, 25)] == [rest for _, *rest in _near(held, 25)]
    assert copy.filter.room(np.arange(len(copy.filter))).tolist() == [10]
