"""Shares against the radius, and the radii that rules choose."""

from __future__ import annotations

import pytest

from reticent import plots
from reticent.core.errors import InvalidInput

NEAR = plots.Series("another row", ((0.1, 0.0, 0.0), (0.2, 0.1, 0.0), (0.5, 0.4, 0.0)), "ours")
OTHER = plots.Series("another class", ((0.1, 0.0, 0.0), (0.5, 0.2, 0.0)), "best", "square")


def test_shares_rules_and_names():
    axes = plots.radius(
        plots.one_panel()[1], [NEAR, OTHER], chosen={"nearest row": 0.4, "cap": 0.25}
    )
    assert [line[0].get_xydata().tolist() for line in axes.containers] == [
        [[x, y] for x, y, _ in series.points] for series in (NEAR, OTHER)
    ]
    upright = [line.get_xdata() for line in axes.lines if len(set(line.get_xdata())) == 1]
    assert upright == [[0.4, 0.4], [0.25, 0.25]]
    assert [text.get_text() for text in axes.texts] == ["nearest row: 0.4", "cap: 0.25"]
    assert axes.get_ylim() == (0.0, 1.0)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "0.2", "0.5"]


@pytest.mark.parametrize(
    ("series", "chosen", "words"),
    [
        ([], {}, "at least one"),
        ([NEAR], {"rule": 0.0}, r"x=0\.0: expected numbers above 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(series, chosen, words):
    with pytest.raises(InvalidInput, match=words):
        plots.radius(plots.one_panel()[1], series, chosen=chosen)
