"""A line chart as inline SVG: it scales with the page, has its colours and can be read aloud."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from reticent.core.errors import InvalidInput

_WIDTH, _HEIGHT = 720.0, 400.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 72.0, 168.0, 16.0, 52.0
_LABEL_GAP = 17.0
_LETTER = 7.8  # width of a bold letter in a name at the end of a line, at most
_DASHES = {"dashed": "8 5", "dotted": "2 4", "dashdot": "8 4 2 4"}
_MARKERS = ("circle", "square", "diamond", "triangle")
_MOST_TICKS = 12

_STYLE = """<style>
svg { background: #fff; font: 13px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
text { fill: #4a555c; } .grid { stroke: #dcdad3; } .axis { stroke: #58646c; }
.level { stroke: #58646c; stroke-dasharray: 2 4; }
.ours { --shade: #0b63a5; } .best { --shade: #b8480c; } .label { --shade: #00755a; }
.plain { --shade: #6b3fa0; } .published { --shade: #58646c; }
.series { stroke: var(--shade, #58646c); fill: var(--shade, #58646c); }
polyline { fill: none; stroke-width: 2.5; } .mark { stroke: #fff; stroke-width: 1.2; }
.end { font-weight: 600; fill: var(--shade, #58646c); } .end.level-name { font-weight: 400; }
.spread { stroke-width: 1.5; opacity: .5; }
</style>"""
"""What a chart looks like where no page around it says so: the pages' colours on white."""


@dataclass(frozen=True)
class Series:
    """One line.

    Attributes:
        name: name, written at the line's end.
        points: points (x, y, half width of the 95 % interval of y) in rising order of x, with x
            above 0 on a logarithmic axis and y in [0, 1].
        style: CSS class that gives its colour.
        marker: "circle", "square", "diamond" or "triangle".
        line: "solid", "dashed", "dotted" or "dashdot".
        steps: whether y stays as it is up to the next point, as an empirical distribution does.
    """

    name: str
    points: tuple[tuple[float, float, float], ...]
    style: str
    marker: str = "circle"
    line: str = "solid"
    steps: bool = False


@dataclass(frozen=True)
class Level:
    """A horizontal reference line at height ``y``, with its name."""

    name: str
    y: float


def line_chart(
    series: Sequence[Series],
    levels: Sequence[Level],
    *,
    title: str,
    description: str,
    x_name: str,
    y_name: str,
    y_range: tuple[float, float] = (0.0, 1.0),
    ticks: Sequence[tuple[float, str]] = (),
    marks: Mapping[str, float] | None = None,
    name: str = "chart",
) -> str:
    """Return the chart as an ``<svg>`` element, with y in percent.

    The axis of x is logarithmic, or linear if it has ``ticks``. ``alone`` makes a file of it.

    Args:
        series: lines, the most important one last (it is drawn on top).
        levels: reference lines.
        title: short name, for screen readers and as a tooltip.
        description: text that describes the chart.
        x_name, y_name: names of the axes.
        y_range: ends of the y axis, within [0, 1]. A point outside is drawn at the nearer end.
        ticks: places and names on a linear axis of x. Without any it is logarithmic.
        marks: places on the axis of x by name, drawn as upright lines.
        name: prefix of the ids of title and description, different for every chart of a page.

    Raises:
        InvalidInput: no series, one without points, with an unknown marker or kind of line, or with
            a place on a logarithmic axis that is not above 0.

    Example:
        >>> one = Series("ours", ((1.0, 0.5, 0.0), (10.0, 0.9, 0.0)), "ours")
        >>> line_chart([one], [], title="t", description="d", x_name="x", y_name="y").count(
        ...     "<circle"
        ... )
        2
    """
    _check(series, marks or {}, logarithmic=not ticks)
    longest = max(map(len, [one.name for one in series] + [one.name for one in levels]))
    right = _WIDTH - max(_RIGHT, 12.0 + _LETTER * longest)
    scale: Callable[[float], float] = float if ticks else math.log
    uprights = marks or {}
    places = sorted({x for one in series for x, _, _ in one.points})
    ends = [at for at, _ in ticks] or [*places, *uprights.values()]
    ticks = ticks or [(x, f"{x:g}") for x in _ticks(places, steps=any(one.steps for one in series))]
    first, low, high = min(ends), scale(min(ends)), scale(max(ends))
    width = (high - low) or 1.0
    floor, ceiling = y_range

    def place(x: float, y: float) -> tuple[float, float]:
        share = (min(max(y, floor), ceiling) - floor) / (ceiling - floor)
        return (
            _LEFT + 14 + (right - _LEFT - 28) * (scale(x) - low) / width,
            _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1.0 - share),
        )

    parts = [
        (
            f'<svg class="chart" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
            f'aria-labelledby="{name}-title {name}-description">'
        ),
        (
            f'<title id="{name}-title">{escape(title)}</title><desc '
            f'id="{name}-description">{escape(description)}</desc>'
        ),
    ]
    step = 20 if ceiling - floor > 0.5 else 5
    for percent in range(
        step * math.ceil(100 * floor / step - 1e-9), math.floor(100 * ceiling + 1e-9) + 1, step
    ):
        _, y = place(first, percent / 100)
        parts.append(
            f'<line class="grid" x1="{_LEFT:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text class="tick" x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{percent} '
            "%</text>"
        )
    for value, told in ticks:
        x, bottom = place(value, 0.0)
        parts.append(
            f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom:.1f}" '
            f'y2="{bottom + 5:.1f}"/>'
        )
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{bottom + 20:.1f}" '
            f'text-anchor="middle">{escape(told)}</text>'
        )
    middle = (_LEFT + right) / 2
    parts.append(
        f'<text class="name" x="{middle:.1f}" y="{_HEIGHT - 8:g}" '
        f'text-anchor="middle">{escape(x_name)}</text>'
    )
    parts.append(
        f'<text class="name" transform="translate(14 {(_TOP + _HEIGHT - _BOTTOM) / 2:.1f}) '
        'rotate(-90)" '
        f'text-anchor="middle">{escape(y_name)}</text>'
    )
    for told, value in uprights.items():
        x, bottom = place(value, floor)
        parts.append(
            f'<line class="level" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP:g}" y2="{bottom:.1f}"/>'
        )
        parts.append(
            f'<text class="tick" transform="translate({x - 5:.1f} {bottom - 6:.1f}) rotate(-90)">'
            f"{escape(told)}: {value:.3g}</text>"
        )
    names: list[tuple[float, str, str]] = []
    for level in levels:
        _, y = place(first, level.y)
        parts.append(
            f'<line class="level" x1="{_LEFT:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        names.append((y, level.name, "level-name"))
    for line in series:
        points = [
            (*place(x, y), place(x, y - half)[1], place(x, y + half)[1], bool(half))
            for x, y, half in line.points
        ]
        parts += _drawn(line, points)
        names.append((place(*line.points[-1][:2])[1], line.name, line.style))
    for y, told, style in _apart(names):
        parts.append(
            f'<text class="end {style}" x="{right + 10:g}" y="{y + 4:.1f}">{escape(told)}</text>'
        )
    parts.append("</svg>")
    return "\n".join(parts)


def alone(svg: str) -> str:
    """Return a chart as the content of an .svg file, which brings its own style."""
    head, _, rest = svg.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg">\n{_STYLE}\n{rest.lstrip()}\n'


def _check(series: Sequence[Series], marks: Mapping[str, float], *, logarithmic: bool) -> None:
    if not series:
        raise InvalidInput("series: expected at least one, got none")
    for one in series:
        if not one.points:
            raise InvalidInput(f"series: {one.name!r} has no points; expected at least one")
        if one.marker not in _MARKERS:
            raise InvalidInput(
                f"series: {one.name!r} has marker={one.marker!r}; expected one of "
                f"{', '.join(_MARKERS)}"
            )
        if one.line != "solid" and one.line not in _DASHES:
            raise InvalidInput(
                f"series: {one.name!r} has line={one.line!r}; expected one of solid, "
                f"{', '.join(_DASHES)}"
            )
    places = [*marks.values(), *(x for one in series for x, _, _ in one.points)]
    if logarithmic and not all(0 < x < math.inf for x in places):
        raise InvalidInput(
            f"x={min(places):g}: expected finite numbers above 0 on a logarithmic axis"
        )


def _ticks(places: Sequence[float], *, steps: bool) -> Sequence[float]:
    """Return places with a tick on a logarithmic axis: all, or of many, or of steps, round ones
    between them.
    """
    if len(places) <= _MOST_TICKS and not steps:
        return places
    decades = range(math.floor(math.log10(places[0])), math.ceil(math.log10(places[-1])) + 1)
    round_ones = [float(f"{digit}e{decade}") for decade in decades for digit in (1, 2, 3, 5, 7)]
    return [x for x in round_ones if places[0] <= x <= places[-1]] or [places[0], places[-1]]


def _drawn(line: Series, points: Sequence[tuple[float, float, float, float, bool]]) -> list[str]:
    """Return the line with its marks.

    Points are x, y, the lower and the upper end of the interval, and whether there is one.
    """
    corners = [(x, y) for x, y, *_ in points]
    if line.steps:
        levels = pairwise(corners)
        corners = [corners[0], *(one for (_, y), end in levels for one in ((end[0], y), end))]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in dict.fromkeys(corners))
    dashes = f' stroke-dasharray="{_DASHES[line.line]}"' if line.line != "solid" else ""
    drawn = [f'<g class="series {line.style}">', f'<polyline points="{path}"{dashes}/>']
    drawn += [
        f'<line class="spread" x1="{x:.1f}" x2="{x:.1f}" y1="{upper:.1f}" y2="{lower:.1f}"/>'
        for x, _, lower, upper, there in points
        if there
    ]
    marks = () if line.steps else points
    return [*drawn, *(_marker(line.marker, x, y) for x, y, *_ in marks), "</g>"]


def _marker(shape: str, x: float, y: float) -> str:
    if shape == "square":
        return f'<rect class="mark" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    if shape == "diamond":
        return f'<path class="mark" d="M{x:.1f} {y - 6:.1f}l6 6-6 6-6-6z"/>'
    if shape == "triangle":
        return f'<path class="mark" d="M{x:.1f} {y - 5.5:.1f}l5.5 9.5h-11z"/>'
    return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


def _apart(ends: Sequence[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Return the labels, moved just far enough that none covers another."""
    order = sorted(ends)
    heights = spread([y for y, _, _ in order], least=_LABEL_GAP, low=_TOP, high=_HEIGHT - _BOTTOM)
    return [(height, *end[1:]) for height, end in zip(heights, order, strict=True)]


def spread(
    heights: Sequence[float], *, least: float, low: float = 0.0, high: float = 1.0
) -> list[float]:
    """Return heights moved as little as possible so that they differ by at least ``least``.

    They stay between ``low`` and ``high`` as far as there is room.

    Args:
        heights: heights in increasing order.
        least: smallest difference of two of them.
        low, high: ends of the room.

    Example:
        >>> [round(height, 3) for height in spread([0.5, 0.5, 0.98], least=0.1)]
        [0.45, 0.55, 0.98]
    """
    clusters: list[list[float]] = []

    def first(cluster: list[float]) -> float:
        """Return the first height of a cluster that is centred on its members' old heights."""
        length = least * (len(cluster) - 1)
        return max(low, min(sum(cluster) / len(cluster) - length / 2, high - length))

    for height in heights:
        clusters.append([height])
        while len(clusters) > 1 and first(clusters[-1]) < (
            first(clusters[-2]) + least * len(clusters[-2])
        ):
            clusters[-2].extend(clusters.pop())
    return [first(cluster) + least * place for cluster in clusters for place in range(len(cluster))]
