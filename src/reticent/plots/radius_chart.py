"""The coverage of a radius: shares of public rows, and caps, against the radius."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reticent.core.errors import InvalidInput
from reticent.pages.line_chart import Series
from reticent.plots.lines import LEGEND, QUIET, draw_line, dress, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def radius(
    axes: Axes,
    series: Sequence[Series],
    *,
    chosen: Mapping[str, float],
    x_name: str = "radius R",
    y_name: str = "share of public rows",
    title: str = "",
    legend: bool = True,
) -> Axes:
    """Draw shares against the radius, and the radii that rules would choose, on ``axes``.

    Args:
        axes: empty axes of matplotlib.
        series: lines such as "another row within R" and "a row of another class within R", with
            points (radius, share in [0, 1], half width of its 95 % interval).
        chosen: radius by the name of the rule that chooses it, drawn as upright lines. One beyond
            the series widens the axis.
        x_name, y_name: names of the axes.
        title: title above the axes, or empty.
        legend: whether the lines are named in a legend within the axes.

    Raises:
        InvalidInput: no series, one without points, or a radius at or below 0.
        MissingExtra: matplotlib is not installed.

    Example:
        >>> from reticent import plots
        >>> figure, axes = plots.one_panel()
        >>> near = plots.Series("another row within R", ((0.1, 0.0, 0.0), (0.5, 0.4, 0.0)), "ours")
        >>> [
        ...     text.get_text()
        ...     for text in plots.radius(axes, [near], chosen={"nearest row": 0.4}).texts
        ... ]
        ['nearest row: 0.4']

    See Also:
        reticent.plots.utility: the cost of the radius in accuracy.
    """
    if not series:
        raise InvalidInput("series: expected at least one, got none")
    places = sorted({x for one in series for x, _, _ in one.points})
    logarithmic(axes, [*places, *(value for value in chosen.values() if value <= 0)])
    for one in series:
        draw_line(axes, one)
    axes.set_ylim(0.0, 1.0)
    dress(axes, x_name=x_name, y_name=y_name, title=title)
    for name, value in chosen.items():
        axes.axvline(value, color=QUIET, linestyle=(0, (2, 3)), linewidth=1.2)
        axes.annotate(
            f"{name}: {value:.3g}",
            (value, 0.0),
            (-3, 4),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="bottom",
            color=QUIET,
            fontsize=8.5,
        )
    if legend:
        axes.legend(**LEGEND)
    return axes
