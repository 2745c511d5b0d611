"""The order of records is their own: no list position and no third record has a say in it."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.neighbours import Records
from reticent.neighbours.records import _keys, _rising


def _data(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.integers(-3, 4, size=(n, 2)).astype(float), rng.integers(0, 3, size=n)


def _rows(records: Records, points: np.ndarray) -> list[tuple[float, ...]]:
    """Points, in the caller's order, and votes by their place."""
    placed = points[np.argsort(records.places)].tolist()
    return [(*point, vote) for point, vote in zip(placed, records.votes.tolist(), strict=True)]


def test_any_list_order_gives_the_same_records() -> None:
    points, votes = _data()
    order = np.random.default_rng(0).permutation(len(points))
    assert _rows(Records.of(points, votes, None), points) == _rows(
        Records.of(points[order], votes[order], None), points[order]
    )


def test_taking_one_away_moves_nobody_past_anybody() -> None:
    points, votes = _data()
    whole = _rows(Records.of(points, votes, None), points)
    for gone in range(len(points)):
        others = np.delete(points, gone, axis=0)
        rest = _rows(Records.of(others, np.delete(votes, gone), None), others)
        twin = list(whole)
        twin.remove((*points[gone].tolist(), int(votes[gone])))
        assert rest == twin


def test_units_follow_their_records() -> None:
    points, votes = _data(20)
    keys = [f"person {i % 7}" for i in range(20)]
    records = Records.of(points, votes, keys)
    assert records.units is not None
    named = {
        (*point, vote): set() for point, vote in zip(points.tolist(), votes.tolist(), strict=True)
    }
    assert len(set(records.units.tolist())) == 7
    for unit in range(7):
        rows = [
            row
            for row, other in zip(_rows(records, points), records.units.tolist(), strict=True)
            if other == unit
        ]
        assert all(row in named for row in rows)
        assert len(rows) == keys.count(f"person {unit}")


def test_a_text_and_a_number_are_different_keys() -> None:
    records = Records.of(np.zeros((3, 1)), [0, 0, 0], ["1", 1, b"1"])
    assert records.units is not None
    assert len(set(records.units.tolist())) == 3


@pytest.mark.parametrize("records", [0, 1, 2, 3, 1500])
@pytest.mark.parametrize("words", [1, 2, 40])
def test_records_stand_by_their_whole_digest(records: int, words: int) -> None:
    """Also those whose digests begin alike, or are the same."""
    rng = np.random.default_rng(words)
    digests = rng.integers(0, 2**63, size=(words, 4)).astype(">u8")[
        rng.integers(0, words, size=(records, 4)), np.arange(4)
    ]
    bits = digests.view(np.uint8).reshape(records, 32)
    cut = records // 3
    keys = [_keys(bits[part], part, records) for part in (slice(0, cut), slice(cut, records))]
    order = _rising(np.concatenate(keys), bits.__getitem__)
    expected = sorted(range(records), key=lambda place: (bits[place].tobytes(), place))
    assert order.tolist() == expected
