"""What no chart can show is refused in plain words."""

from __future__ import annotations

import pytest

from reticent.core.errors import InvalidInput
from reticent.plots import Chart, Series

POINT = ((1.0, 0.5, 0.0),)


@pytest.mark.parametrize(
    ("series", "marks"),
    [
        ([], {}),
        ([Series("a", (), "ours")], {}),
        ([Series("a", ((0.0, 0.5, 0.0),), "ours")], {}),
        ([Series("a", ((float("nan"), 0.5, 0.0),), "ours")], {}),
        ([Series("a", POINT, "ours", "heart")], {}),
        ([Series("a", POINT, "ours", line="wavy")], {}),
        ([Series("a", POINT, "ours")], {"R": -1.0}),
    ],
)
def test_a_chart_that_cannot_be_drawn_is_refused(series, marks) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        Chart("title", "x", series, marks=marks).svg()
