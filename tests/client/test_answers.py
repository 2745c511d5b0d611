"""Answers of several requests as one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.client.answers import Answers, joined
from reticent.core import Guarantee, Receipt, Replace
from reticent.core.errors import InvalidInput
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


def test_words_and_a_part_without_an_answer_fit_together() -> None:
    parts = [part(["yes", "no"], [False, False]), part([-1, -1], [True, True])]
    assert joined(parts, rows=Rows()).values.tolist() == ["yes", "no", None, None]


def test_answers_with_other_columns_are_refused() -> None:
    with pytest.raises(InvalidInput, match="different columns"):
        joined([part([1], [False]), part([1], [False], ("other",))], rows=Rows())


def test_a_frame_has_the_index_of_the_rows() -> None:
    pandas = pytest.importorskip("pandas")
    rows = Rows("pandas", pandas.Index(["x", "y"]))
    frame = joined([part([1], [False]), part([2], [False])], rows=rows).to_frame()
    assert frame.index.tolist() == ["x", "y"]
    assert frame["label"].tolist() == [1, 2]
