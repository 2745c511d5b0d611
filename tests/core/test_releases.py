from __future__ import annotations

import json

import numpy as np

from reticent.core import AddRemove, Guarantee, Receipt, Release


def receipt(**change):
    return Receipt(
        "m", Guarantee(1.0, 0.0, AddRemove()), 3, "", "none", "s", **{"seeded": False, **change}
    )


def test_released_rows_are_those_not_withheld():
    release = Release(np.array([[1.0], [np.nan], [3.0]]), np.array([False, True, False]), receipt())
    assert len(release) == 3
    assert release.released.tolist() == [[1.0], [3.0]]


def test_a_seeded_receipt_says_that_it_is_not_private():
    assert "seeded: not private" in receipt(seeded=True).describe()
    assert "epsilon=1" in receipt().describe()
    assert "not booked" in receipt().describe()
    assert "booked as 7" in receipt(booked="7").describe()
    assert json.loads(json.dumps(receipt().to_dict()))["seeded"] is False
    assert receipt().identifier != receipt().identifier
