"""What is drawn is what was given: every point, interval, level and name."""

from __future__ import annotations

import numpy as np
import pytest

from reticent import plots
from reticent.core.errors import InvalidInput
from reticent.plots.lines import COLOURS

OURS = plots.Series("ours", ((1.0, 0.72, 0.02), (4.0, 0.91, 0.01)), "ours")
RIVAL = plots.Series("rival", ((1.0, 0.55, 0.0), (2.0, 0.6, 0.0)), "best", "square", "dashed")
LEVELS = [plots.Level("no protection", 0.95), plots.Level("most frequent answer", 0.51)]


def axes_of(**options):
    return plots.utility(plots.one_panel()[1], [OURS, RIVAL], LEVELS, **options)


def test_lines_go_through_their_points_with_their_intervals():
    axes = axes_of()
    ours, rival = axes.containers
    assert ours[0].get_xydata().tolist() == [[1.0, 0.72], [4.0, 0.91]]
    assert rival[0].get_xydata().tolist() == [[1.0, 0.55], [2.0, 0.6]]
    [bars] = ours[2]
    assert np.array(bars.get_segments())[:, :, 1] == pytest.approx(
        np.array([[0.7, 0.74], [0.9, 0.92]])
    )
    assert rival[2] == ()  # no interval, none drawn
    assert (ours[0].get_color(), rival[0].get_color()) == (COLOURS["ours"], COLOURS["best"])
    assert (rival[0].get_marker(), rival[0].get_linestyle()) == ("s", "--")


@pytest.mark.parametrize(
    ("series", "words"),
    [
        ([], "at least one"),
        ([plots.Series("empty", (), "ours")], "'empty' has no points"),
        ([plots.Series("zero", ((0.0, 0.5, 0.0),), "ours")], r"x=0\.0: expected numbers above 0"),
        ([plots.Series("odd", ((1.0, 0.5, 0.0),), "ours", "star")], "marker='star'"),
        ([plots.Series("odd", ((1.0, 0.5, 0.0),), "ours", line="wavy")], "line='wavy'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(series, words):
    with pytest.raises(InvalidInput, match=words):
        plots.utility(plots.one_panel()[1], series)
