"""What is drawn is what was given: every point, interval, level and name."""

from __future__ import annotations

import numpy as np
import pytest

from reticent import plots
from reticent.core.errors import InvalidInput
from reticent.plots.lines import COLOURS, QUIET

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


def test_every_epsilon_has_a_tick_and_every_line_a_name():
    axes = axes_of(title="What it costs")
    axes.figure.canvas.draw()
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "rival"]
    assert axes.get_title(loc="left") == "What it costs"
    assert axes.get_yticklabels()[0].get_text().endswith(" %")


def test_levels_stand_at_their_heights_and_their_names_apart():
    near = [plots.Level(name, 0.7 + place / 1000) for place, name in enumerate("abcd")]
    axes = plots.utility(plots.one_panel()[1], [OURS], near)
    drawn = [line.get_ydata()[0] for line in axes.lines if line.get_color() == QUIET]
    assert drawn == [level.y for level in near]
    heights = {text.get_text(): text.xy[1] for text in axes.texts}
    assert list(heights) == list("abcd")
    assert np.diff(list(heights.values())).min() > 0.05


def test_the_range_holds_everything_or_is_what_was_asked_for():
    assert axes_of().get_ylim() == pytest.approx((0.5, 1.0))
    assert axes_of(y_range=(0.0, 0.99)).get_ylim() == (0.0, 0.99)


def test_numbers_that_are_no_shares_are_written_as_they_are():
    line = plots.Series("bound", ((1.0, 40.0, 0.0), (2.0, 90.0, 0.0)), "")
    axes = plots.utility(plots.one_panel()[1], [line], shares=False, legend=False, log_x=False)
    axes.figure.canvas.draw()
    assert axes.get_legend() is None
    assert axes.get_xscale() == "linear"
    assert axes.get_ylim()[1] > 89
    assert "%" not in axes.get_yticklabels()[0].get_text()
    assert axes.containers[0][0].get_color() == QUIET


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
