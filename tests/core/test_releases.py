from __future__ import annotations

import json

from reticent.core import AddRemove, Guarantee, Receipt


def receipt(**change):
    return Receipt(
        "m", Guarantee(1.0, 0.0, AddRemove()), 3, "", "none", "s", **{"seeded": False, **change}
    )


def test_a_seeded_receipt_says_that_it_is_not_private():
    assert "seeded: not private" in receipt(seeded=True).describe()
    assert "epsilon=1" in receipt().describe()
    assert "not booked" in receipt().describe()
    assert "booked as 7" in receipt(booked="7").describe()
    assert json.loads(json.dumps(receipt().to_dict()))["seeded"] is False
    assert receipt().identifier != receipt().identifier
