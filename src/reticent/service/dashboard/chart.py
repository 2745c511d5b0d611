"""Spending over time as inline SVG: a step curve for each budget, in percent of its grant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape

import numpy as np

from reticent.ledger.charges import epsilon_value
from reticent.ledger.reports import Spending
from reticent.service.dashboard.numbers import amount

STYLES = ("ours", "label", "plain", "published", "best")
"""Classes of the style sheet that give curves their colours; as many curves are drawn at most."""

_GAP = 34.0
_LONGEST = 24


@dataclass(frozen=True)
class Frame:
    """The size of a chart, and what it has room for.

    Attributes:
        name: prefix of the ids of its title and description, and its CSS class.
        width, height, left, right, top, bottom: lengths in units of the drawing.
        ticks: intervals of time.
        named: whether curves are named at their ends.
    """

    name: str
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    ticks: int
    named: bool

    def x(self, position: float) -> float:
        """Return the place of a time, from 0 (first) to 1 (last)."""
        return self.left + (self.width - self.left - self.right) * position

    def y(self, share: float) -> float:
        """Return the place of a share, from 0 to 1."""
        inside = self.height - self.top - self.bottom
        return self.top + inside * (1.0 - min(max(share, 0.0), 1.0))


WIDE = Frame("wide", 760.0, 340.0, 64.0, 190.0, 14.0, 44.0, 4, named=True)
NARROW = Frame("narrow", 360.0, 260.0, 46.0, 12.0, 12.0, 32.0, 2, named=False)
"""For a phone: the curves are named below it."""


@dataclass(frozen=True)
class Curve:
    """One budget over time.

    Attributes:
        name: its scope.
        note: text that says what is left of it.
        style: CSS class of its colour.
        share: spent part of what was granted, at each time.
    """

    name: str
    note: str
    style: str
    share: tuple[float, ...]


@dataclass(frozen=True)
class SpendingChart:
    """Both sizes of the chart, and its curves.

    Attributes:
        wide, narrow: ``<svg>`` elements.
        curves: the curves, the tightest budget first.
    """

    wide: str
    narrow: str
    curves: tuple[Curve, ...]


def spending_chart(series: Sequence[Spending]) -> SpendingChart | None:
    """Return the chart of what was spent over time, or None where nothing was.

    Args:
        series: series of ``Ledger.spending``, the tightest budget first. The first few are drawn.
    """
    drawn = series[: len(STYLES)]
    if not drawn:
        return None
    times = drawn[0].at.astype("datetime64[us]").astype(np.int64).tolist()
    step = times[1] - times[0] if len(times) > 1 else 1
    times = [times[0] - step, *times]
    curves = tuple(_curve(one, style) for one, style in zip(drawn, STYLES, strict=False))
    return SpendingChart(_drawn(WIDE, times, curves), _drawn(NARROW, times, curves), curves)


def _drawn(frame: Frame, times: Sequence[int], curves: Sequence[Curve]) -> str:
    told = "; ".join(f"{one.name}: {one.share[-1]:.0%} spent, {one.note}" for one in curves)
    head = (
        f'<svg class="chart {frame.name}" viewBox="0 0 {frame.width:g} {frame.height:g}" '
        f'role="img" aria-labelledby="{frame.name}-title {frame.name}-words">'
    )
    parts = [
        head,
        f'<title id="{frame.name}-title">Spending over time, percent of what was granted</title>',
        f'<desc id="{frame.name}-words">{escape(told)}</desc>',
        *_axes(frame, times[0], times[-1]),
    ]
    for curve in reversed(curves):  # the tightest on top
        points = _steps(frame, times, curve.share)
        parts.append(f'<g class="series {curve.style}"><polyline points="{points}"/></g>')
    if frame.named:
        parts += _ends(frame, curves)
    return "\n".join([*parts, "</svg>"])


def _curve(one: Spending, style: str) -> Curve:
    granted = epsilon_value(one.budget.granted_epsilon)
    name = " / ".join(value for value in one.budget.scope.parts.values() if value)
    left = amount(epsilon_value(one.budget.left_epsilon))
    shares = (0.0, *(float(value) / (granted or 1.0) for value in one.epsilon))
    short = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    return Curve(short, f"{left} of {amount(granted)} left", style, shares)


def _steps(frame: Frame, times: Sequence[int], share: Sequence[float]) -> str:
    """Return the corners of the curve, without those on a level stretch."""
    width = max(1, times[-1] - times[0])
    points: list[tuple[float, float]] = []
    for place, (at, value) in enumerate(zip(times, share, strict=True)):
        x, y = frame.x((at - times[0]) / width), frame.y(value)
        if points and y != points[-1][1]:
            points += [(x, points[-1][1]), (x, y)]
        elif place in (0, len(times) - 1):
            points.append((x, y))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _axes(frame: Frame, first: int, last: int) -> list[str]:
    parts = []
    right = frame.x(1.0)
    for percent in range(0, 101, 25):
        y = frame.y(percent / 100)
        style = "level" if percent == 100 else "grid"
        parts.append(
            f'<line class="{style}" x1="{frame.left:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text class="tick" x="{frame.left - 8:g}" y="{y + 4:.1f}" text-anchor="end">'
            f"{percent}\u00a0%</text>"
        )
    pattern = _pattern(timedelta(microseconds=last - first))
    for tick in range(frame.ticks + 1):
        at = first + (last - first) * tick / frame.ticks
        label = datetime.fromtimestamp(at / 1e6, UTC).strftime(pattern)
        anchor = {0: "start", frame.ticks: "end"}.get(tick, "middle")
        parts.append(
            f'<text class="tick" x="{frame.x(tick / frame.ticks):.1f}" '
            f'y="{frame.height - frame.bottom + 22:g}" text-anchor="{anchor}">{label}</text>'
        )
    return parts


def _pattern(span: timedelta) -> str:
    if span < timedelta(minutes=10):
        return "%H:%M:%S"
    if span < timedelta(days=1):
        return "%H:%M"
    return "%d %b %H:%M" if span < timedelta(days=4) else "%d %b %Y"


def _ends(frame: Frame, curves: Sequence[Curve]) -> list[str]:
    """Return two lines of text at the end of each curve, far enough from each other to be read."""
    order = sorted(curves, key=lambda curve: frame.y(curve.share[-1]))
    places: list[float] = []
    for curve in order:
        wanted = max(frame.y(curve.share[-1]), frame.top + 6)
        places.append(max(wanted, places[-1] + _GAP) if places else wanted)
    over = max(0.0, places[-1] + 4 - (frame.height - frame.bottom))
    parts = []
    for number, (curve, place) in enumerate(zip(order, places, strict=True)):
        x, y = frame.x(1.0) + 12, max(place - over, frame.top + 6 + _GAP * number)
        parts.append(
            f'<text class="end {curve.style}" x="{x:g}" y="{y:.1f}">{escape(curve.name)}'
            f'<tspan class="tick" x="{x:g}" dy="15">{escape(curve.note)}</tspan></text>'
        )
    return parts
