"""Lines over epsilon on axes of matplotlib: the worth of releases, beside baselines and levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import ticker

from reticent.pages.line_chart import Level, Series, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {
    "ours": "#0b63a5",
    "label": "#00755a",
    "best": "#b8480c",
    "plain": "#6b3fa0",
    "published": "#8a8f93",
}
_QUIET = "#58646c"
_GRID = "#e6e4de"
_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
_DASHES = {"solid": "-", "dashed": "--", "dotted": ":", "dashdot": "-."}
_LABEL_HEIGHT = 0.055  # between the names of two levels, as a share of the axes' height
_FEW_DECADES = 300.0  # ratio of the ends of an axis from which powers of ten are ticks enough
_MANY_POINTS = 20  # with marks: more would hide the line
_MANY_TICKS = 12


def utility(
    axes: Axes,
    series: Sequence[Series],
    levels: Sequence[Level] = (),
    *,
    x_name: str,
    y_name: str = "accuracy",
    y_range: tuple[float, float] | None = None,
    title: str = "",
    log_x: bool = True,
    shares: bool = True,
) -> Axes:
    """Draw one line per method over epsilon on ``axes``, and levels that no epsilon changes.

    Args:
        axes: empty axes of matplotlib.
        series: one series per method, with points (epsilon, utility, half width of its 95 %
            interval). The half width is 0 if there is none.
        levels: reference lines, such as no protection and the most frequent answer.
        x_name, y_name: names of the axes.
        y_range: ends of the y axis, or None for the multiples of 0.05 around all that is drawn.
        title: title above the axes, or empty.
        log_x: whether the x axis is logarithmic.
        shares: whether utilities are shares in [0, 1], written in percent.
    """
    for one in series:
        _draw_line(axes, one)
    if log_x:
        _logarithmic(axes, sorted({x for one in series for x, _, _ in one.points}))
    if y_range is not None:
        axes.set_ylim(*y_range)
    elif shares:
        axes.set_ylim(*_around(series, levels))
    if shares:
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(ticker.MultipleLocator(0.05 if high - low <= 0.5 else 0.2))
        axes.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name)
    if title:
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.grid(axis="y", color=_GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    _draw_levels(axes, levels)
    return axes


def _draw_line(axes: Axes, series: Series) -> None:
    x, y, half = np.asarray(series.points, dtype=np.float64).T
    first, behind = series.style == "ours", series.style == "published"
    axes.errorbar(
        x,
        y,
        yerr=half if half.any() else None,
        label=series.name,
        color=_COLOURS.get(series.style, _QUIET),
        marker=_MARKERS[series.marker] if len(x) <= _MANY_POINTS else None,
        markersize=5,
        linestyle=_DASHES[series.line],
        linewidth=2.4 if first else 1.3 if behind else 1.8,
        capsize=2,
        zorder=4 if first else 2 if behind else 3,
    )


def _draw_levels(axes: Axes, levels: Sequence[Level]) -> None:
    """Draw horizontal lines, with readable names at the right end."""
    low, high = axes.get_ylim()
    for level in levels:
        axes.axhline(level.y, color=_QUIET, linestyle=(0, (2, 3)), linewidth=1, zorder=1)
    order = sorted(levels, key=lambda level: level.y)
    heights = spread([(level.y - low) / (high - low) for level in order], least=_LABEL_HEIGHT)
    for level, height in zip(order, heights, strict=True):
        axes.annotate(
            level.name,
            (1.0, height),
            (4, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=_QUIET,
            fontsize=8.5,
            va="center",
            annotation_clip=False,
        )


def _logarithmic(axes: Axes, values: Sequence[float]) -> None:
    """Make the x axis logarithmic, with a tick at each of ``values`` if they are few."""
    axes.set_xscale("log")
    if len(values) <= _MANY_TICKS:
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    elif max(values) < _FEW_DECADES * min(values):  # powers of ten alone would be one tick or two
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 3.0, 5.0, 7.0)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())


def _around(series: Sequence[Series], levels: Sequence[Level]) -> tuple[float, float]:
    """Return the multiples of 0.05 around everything, with a hundredth to spare."""
    heights = [level.y for level in levels]
    heights += [end for one in series for _, y, half in one.points for end in (y - half, y + half)]
    low, high = min(heights) - 0.01, max(heights) + 0.01
    return max(0.0, math.floor(20 * low) / 20), min(1.0, math.ceil(20 * high) / 20)
