"""Spending over time as inline SVG: a step curve for each budget, in percent of its grant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape

import numpy as np

from reticent.ledger.reports import Spending
from reticent.ledger.units import epsilon_value
from reticent.service.dashboard.numbers import amount

STYLES = ("ours", "best", "label", "plain", "published")
"""Classes of the style sheet that give curves their colours; as many curves are drawn at most."""

_WIDTH, _HEIGHT = 760.0, 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 190.0, 14.0, 44.0
_GAP = 34.0
_LONGEST = 24
_TICKS = 4


@dataclass(frozen=True)
class _Curve:
    name: str
    note: str
    style: str
    share: tuple[float, ...]


def spending_chart(series: Sequence[Spending]) -> str:
    """The chart as an ``<svg>`` element; "" where nothing was spent.

    Args:
        series: of ``Ledger.spending``, the tightest budget first; the first few are drawn.
    """
    drawn = series[: len(STYLES)]
    if not drawn:
        return ""
    times = drawn[0].at.astype("datetime64[us]").astype(np.int64).tolist()
    step = times[1] - times[0] if len(times) > 1 else 1
    times = [times[0] - step, *times]
    curves = [_curve(one, style) for one, style in zip(drawn, STYLES, strict=False)]
    told = "; ".join(f"{one.name}: {one.share[-1]:.0%} spent, {one.note}" for one in curves)
    parts = [
        (
            f'<svg class="chart" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
            'aria-labelledby="spending-title spending-words">'
        ),
        '<title id="spending-title">Spending over time, percent of what was granted</title>',
        f'<desc id="spending-words">{escape(told)}</desc>',
        *_axes(times[0], times[-1]),
    ]
    for curve in reversed(curves):  # the tightest on top
        points = _steps(times, curve.share)
        parts.append(f'<g class="series {curve.style}"><polyline points="{points}"/></g>')
    parts += _ends(curves)
    return "\n".join([*parts, "</svg>"])


def _curve(one: Spending, style: str) -> _Curve:
    granted = epsilon_value(one.budget.granted_epsilon)
    parts = [value for value in one.budget.scope.parts.values() if value]
    name = " / ".join(parts)
    left = amount(epsilon_value(one.budget.left_epsilon))
    shares = (0.0, *(float(value) / granted for value in one.epsilon))
    short = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    return _Curve(short, f"{left} of {amount(granted)} left", style, shares)


def _x(position: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * position


def _y(share: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1.0 - min(max(share, 0.0), 1.0))


def _steps(times: Sequence[int], share: Sequence[float]) -> str:
    """Corners of the curve, without those on a level stretch."""
    width = max(1, times[-1] - times[0])
    points: list[tuple[float, float]] = []
    for place, (at, value) in enumerate(zip(times, share, strict=True)):
        x, y = _x((at - times[0]) / width), _y(value)
        if points and y != points[-1][1]:
            points += [(x, points[-1][1]), (x, y)]
        elif place in (0, len(times) - 1):
            points.append((x, y))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _axes(first: int, last: int) -> list[str]:
    parts = []
    for percent in range(0, 101, 25):
        y = _y(percent / 100)
        style = "level" if percent == 100 else "grid"
        parts.append(
            f'<line class="{style}" x1="{_LEFT:g}" x2="{_x(1.0):g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text class="tick" x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">'
            f"{percent}\u00a0%</text>"
        )
    pattern = _pattern(timedelta(microseconds=last - first))
    for tick in range(_TICKS + 1):
        at = first + (last - first) * tick / _TICKS
        label = datetime.fromtimestamp(at / 1e6, UTC).strftime(pattern)
        x, anchor = (
            _x(tick / _TICKS),
            "start" if tick == 0 else "end" if tick == _TICKS else "middle",
        )
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 22:g}" '
            f'text-anchor="{anchor}">{label}</text>'
        )
    return parts


def _pattern(span: timedelta) -> str:
    if span < timedelta(minutes=10):
        return "%H:%M:%S"
    if span < timedelta(days=1):
        return "%H:%M"
    return "%d %b %H:%M" if span < timedelta(days=4) else "%d %b %Y"


def _ends(curves: Sequence[_Curve]) -> list[str]:
    """Two lines of text at the end of each curve, far enough from each other to be read."""
    order = sorted(curves, key=lambda curve: _y(curve.share[-1]))
    places: list[float] = []
    for curve in order:
        wanted = _y(curve.share[-1])
        places.append(max(wanted, places[-1] + _GAP) if places else max(wanted, _TOP + 6))
    over = max(0.0, places[-1] + 18 - (_HEIGHT - _BOTTOM + 14))
    parts = []
    for number, (curve, place) in enumerate(zip(order, places, strict=True)):
        y = max(place - over, _TOP + 6 + _GAP * number)
        x = _x(1.0) + 12
        parts.append(
            f'<text class="end {curve.style}" x="{x:g}" y="{y:.1f}">{escape(curve.name)}'
            f'<tspan class="tick" x="{x:g}" dy="15">{escape(curve.note)}</tspan></text>'
        )
    return parts
