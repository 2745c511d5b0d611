"""The worth of a release against epsilon, with every baseline and every level beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reticent.core.errors import InvalidInput
from reticent.core.extras import require
from reticent.pages.line_chart import Level, Series
from reticent.plots.lines import LEGEND, draw_levels, draw_line, dress, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def utility(
    axes: Axes,
    series: Sequence[Series],
    levels: Sequence[Level] = (),
    *,
    x_name: str = "proved total ε (smaller protects more)",
    y_name: str = "accuracy",
    y_range: tuple[float, float] | None = None,
    title: str = "",
    log_x: bool = True,
    shares: bool = True,
    legend: bool = True,
) -> Axes:
    """Draw one line per method over epsilon on ``axes``, and levels that no epsilon changes.

    Args:
        axes: empty axes of matplotlib.
        series: one series per method, with points (epsilon, utility, half width of its 95 %
            interval). The half width is 0 if there is none. The style gives the colour: "ours",
            "label", "best", "plain" or "published". Any other is grey.
        levels: reference lines, such as no protection and the most frequent answer.
        x_name, y_name: names of the axes.
        y_range: ends of the y axis, or None for the multiples of 0.05 around all that is drawn.
        title: title above the axes, or empty.
        log_x: whether the x axis is logarithmic.
        shares: whether utilities are shares in [0, 1], written in percent.
        legend: whether the lines are named in a legend within the axes.

    Raises:
        InvalidInput: no series, one without points, or an epsilon at or below 0 on a logarithmic
            axis.
        MissingExtra: matplotlib is not installed.

    Example:
        >>> from reticent import plots
        >>> figure, axes = plots.one_panel()
        >>> ours = plots.Series("ours", ((1.0, 0.72, 0.02), (4.0, 0.91, 0.01)), "ours")
        >>> drawn = plots.utility(axes, [ours], [plots.Level("no protection", 0.95)])
        >>> [label.get_text() for label in drawn.get_xticklabels()]
        ['1', '4']

    See Also:
        reticent.plots.attack: an attacker's success at the same epsilons.
    """
    if not series:
        raise InvalidInput("series: expected at least one, got none")
    for one in series:
        draw_line(axes, one)
    if log_x:
        logarithmic(axes, sorted({x for one in series for x, _, _ in one.points}))
    if y_range is not None:
        axes.set_ylim(*y_range)
    elif shares:
        axes.set_ylim(*_around(series, levels))
    if shares:
        low, high = axes.get_ylim()
        ticker = require("matplotlib.ticker", extra="plots")
        axes.yaxis.set_major_locator(ticker.MultipleLocator(0.05 if high - low <= 0.5 else 0.2))
    dress(axes, x_name=x_name, y_name=y_name, title=title, shares=shares)
    draw_levels(axes, levels)
    if legend:
        axes.legend(**LEGEND)
    return axes


def _around(series: Sequence[Series], levels: Sequence[Level]) -> tuple[float, float]:
    """Return the multiples of 0.05 around everything, with a hundredth to spare."""
    heights = [level.y for level in levels]
    heights += [end for one in series for _, y, half in one.points for end in (y - half, y + half)]
    low, high = min(heights) - 0.01, max(heights) + 0.01
    return max(0.0, math.floor(20 * low) / 20), min(1.0, math.ceil(20 * high) / 20)
