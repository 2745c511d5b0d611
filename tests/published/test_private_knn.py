from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.published.private_knn import (
    data_dependent_label_rdp,
    data_dependent_screening_rdp,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "accounting/golden.json").read_text())


@pytest.mark.parametrize("name", ["strong", "medium", "tie"])
def test_golden_values(name: str) -> None:
    row = GOLDEN["data_dependent"][name]
    label = data_dependent_label_rdp(row["votes"], row["orders"], sigma=row["sigma"], private=True)
    assert label == pytest.approx(row["label"], rel=1e-9)
    bit = data_dependent_screening_rdp(
        row["votes"], row["orders"], threshold=210, sigma=85.0, private=True
    )
    assert bit == pytest.approx(row["screening"], rel=1e-9)


@pytest.mark.parametrize("said", [False, 1, "yes", None])
def test_nothing_without_saying_that_it_stays_private(said: Any) -> None:
    with pytest.raises(InvalidParameter, match="private="):
        data_dependent_label_rdp([5, 1], [2.0], sigma=1.0, private=said)
    with pytest.raises(InvalidParameter, match="private="):
        data_dependent_screening_rdp([5, 1], [2.0], threshold=3, sigma=1.0, private=said)


def test_votes_that_are_no_histogram_are_refused() -> None:
    for votes in ([5.0], [[5.0, 1.0]], [5.0, -1.0]):
        with pytest.raises(InvalidInput, match="votes") as caught:
            data_dependent_label_rdp(votes, [2.0], sigma=1.0, private=True)
        assert "5.0" not in str(caught.value)
    assert data_dependent_screening_rdp([0, 0], [2.0], threshold=3, sigma=2.0, private=True)[0] > 0
