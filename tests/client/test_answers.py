"""Answers of several requests as one table."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent.client.answers import Answers, joined
from reticent.core import Guarantee, Receipt, Replace
from reticent.core.releases import Rows


def part(values: Any, withheld: list[bool], columns: tuple[str, ...] = ("label",)) -> Answers:
    guarantee = Guarantee(0.5, 0.0, Replace(1, data_set="ward"))
    receipt = Receipt("label", guarantee, len(withheld), "ab" * 32, "none", "exact", False)
    return Answers(
        np.asarray(values),
        np.array(withheld),
        receipt,
        columns,
        receipts=(receipt,),
        verified=True,
        request="of-a-test",
    )


def test_rows_stay_in_order_and_each_names_its_receipt() -> None:
    first, second = part([1, 2], [False, False]), part([-1], [True])
    whole = joined([first, second], rows=Rows())
    assert whole.values.tolist() == [1, 2, -1]
    names = [first.receipt.identifier] * 2 + [second.receipt.identifier]
    assert whole.to_columns()["receipt"] == names
    assert whole.to_columns()["label"] == [1, 2, None]
    assert whole.verified
    assert whole.request == "of-a-test"
