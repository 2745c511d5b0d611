"""The common look of all charts: lines, reference levels and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.core.errors import InvalidInput
from reticent.core.extras import require
from reticent.pages.line_chart import Level, Series, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer

COLOURS = {
    "ours": "#0b63a5",
    "label": "#00755a",
    "best": "#b8480c",
    "plain": "#6b3fa0",
    "published": "#8a8f93",
}
"""Colours by the style of a series: those of the pages' style sheet on white. Others are grey."""

QUIET = "#58646c"
GRID = "#e6e4de"

LEGEND: dict[str, Any] = {"fontsize": 9, "loc": "best", "framealpha": 0.85, "edgecolor": "none"}
"""Settings of a legend within the axes."""

_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
_DASHES = {"solid": "-", "dashed": "--", "dotted": ":", "dashdot": "-."}
_LABEL_HEIGHT = 0.055
"""Least distance between the names of two levels, as a share of the axes' height."""

_FEW_DECADES = 300.0
"""Least ratio of the ends of a logarithmic axis at which powers of ten are ticks enough."""

_MANY_POINTS = 20
"""Most points with marks: more would stand so close that marks hide the line."""


def draw_line(axes: Axes, series: Series) -> ErrorbarContainer:
    """Draw one series with its marks and 95 % intervals.

    Raises:
        InvalidInput: a series without points, or with an unknown marker or kind of line.
    """
    if not series.points:
        raise InvalidInput(f"series: {series.name!r} has no points; expected at least one")
    for kind, value, known in (
        ("marker", series.marker, _MARKERS),
        ("line", series.line, _DASHES),
    ):
        if value not in known:
            raise InvalidInput(
                f"series: {series.name!r} has {kind}={value!r}; expected one of {', '.join(known)}"
            )
    x, y, half = np.asarray(series.points, dtype=np.float64).T
    first, behind = series.style == "ours", series.style == "published"
    return axes.errorbar(
        x,
        y,
        yerr=half if half.any() else None,
        label=series.name,
        color=COLOURS.get(series.style, QUIET),
        marker=_MARKERS[series.marker] if len(x) <= _MANY_POINTS and not series.steps else None,
        drawstyle="steps-post" if series.steps else "default",
        markersize=5,
        linestyle=_DASHES[series.line],
        linewidth=2.4 if first else 1.3 if behind else 1.8,
        capsize=2,
        zorder=4 if first else 2 if behind else 3,
    )


def draw_levels(axes: Axes, levels: Sequence[Level]) -> None:
    """Draw horizontal reference lines, with readable names at the right end.

    Call it after the range of the y axis is set.
    """
    low, high = axes.get_ylim()
    for level in levels:
        axes.axhline(level.y, color=QUIET, linestyle=(0, (2, 3)), linewidth=1, zorder=1)
    order = sorted(levels, key=lambda level: level.y)
    heights = spread([(level.y - low) / (high - low) for level in order], least=_LABEL_HEIGHT)
    for level, height in zip(order, heights, strict=True):
        axes.annotate(
            level.name,
            (1.0, height),
            (4, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=QUIET,
            fontsize=8.5,
            va="center",
            annotation_clip=False,
        )


def dress(axes: Axes, *, x_name: str, y_name: str, title: str = "", shares: bool = True) -> None:
    """Set names, grid and frame. With ``shares`` the y axis is in percent."""
    if shares:
        ticker = require("matplotlib.ticker", extra="plots")
        axes.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name)
    if title:
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def logarithmic(axes: Axes, values: Sequence[float], most: int = 12) -> None:
    """Make the x axis logarithmic, with a tick at each of ``values`` if they are at most ``most``.

    Raises:
        InvalidInput: a value at or below 0.
    """
    if min(values) <= 0:
        raise InvalidInput(f"x={min(values)!r}: expected numbers above 0 on a logarithmic axis")
    axes.set_xscale("log")
    if len(values) <= most:
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    elif max(values) < _FEW_DECADES * min(values):  # powers of ten alone would be one tick or two
        ticker = require("matplotlib.ticker", extra="plots")
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 3.0, 5.0, 7.0)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
