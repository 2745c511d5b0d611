"""The chart of spending over time: a step curve for each budget, in percent of its grant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from reticent.ledger.charges import epsilon_value
from reticent.ledger.reports import Spending
from reticent.pages.line_chart import Level, Series, alone, line_chart

STYLES = ("ours", "label", "plain", "published", "best")
"""Classes of the style sheet that give curves their colours; as many curves are drawn at most."""

_TICKS = 4
_LONGEST = 24


@dataclass(frozen=True)
class SpendingChart:
    """The chart, and its legend.

    Attributes:
        svg: the ``<svg>`` element.
        curves: style, name and remainder of each curve, the tightest budget first.
    """

    svg: str
    curves: tuple[tuple[str, str, str], ...]

    def alone(self) -> str:
        """Return the chart as the content of an .svg file."""
        return alone(self.svg)


def spending_chart(series: Sequence[Spending]) -> SpendingChart | None:
    """Return the chart of what was spent over time, or None where nothing was.

    Args:
        series: series of ``Ledger.spending``, the tightest budget first. The first few are drawn.
    """
    if not series:
        return None
    times = series[0].at.astype("datetime64[us]").astype(np.int64).tolist()
    times = [times[0] - (times[1] - times[0] if len(times) > 1 else 1), *times]
    lines, curves = [], []
    for one, style in zip(series, STYLES, strict=False):
        granted = epsilon_value(one.budget.granted_epsilon)
        name = " / ".join(value for value in one.budget.scope.parts.values() if value)
        name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        shares = [0.0, *(float(value) / (granted or 1.0) for value in one.epsilon)]
        points = tuple((at, share, 0.0) for at, share in zip(times, shares, strict=True))
        lines.append(Series(name, points, style, steps=True))
        left = amount(epsilon_value(one.budget.left_epsilon))
        curves.append((style, name, f"{left} of {amount(granted)} left"))
    drawn = line_chart(
        lines[::-1],  # the tightest on top
        [Level("granted", 1.0)],
        title="Spending over time, percent of what was granted",
        description="; ".join(
            f"{name}: {line.points[-1][1]:.0%} spent, {left}"
            for line, (_, name, left) in zip(lines, curves, strict=True)
        ),
        x_name="time (UTC)",
        y_name="spent",
        ticks=_ticks(times[0], times[-1]),
        name="spent",
    )
    return SpendingChart(drawn, tuple(curves))


def _ticks(first: int, last: int) -> list[tuple[float, str]]:
    """Return times at equal distances, in microseconds since 1970, and their names."""
    span = timedelta(microseconds=last - first)
    limits = {timedelta(seconds=5): "%M:%S.%f", timedelta(minutes=10): "%H:%M:%S"}
    limits |= {timedelta(days=1): "%H:%M"}
    limits |= {timedelta(days=4): "%d %b %H:%M", timedelta.max: "%d %b %Y"}
    pattern = next(pattern for limit, pattern in limits.items() if span < limit)
    places = [first + (last - first) * tick / _TICKS for tick in range(_TICKS + 1)]
    told = [datetime.fromtimestamp(at / 1e6, UTC).strftime(pattern) for at in places]
    return [
        (at, one[:-4] if pattern.endswith("%f") else one)
        for at, one in zip(places, told, strict=True)
    ]


def amount(value: float) -> str:
    """Return an epsilon or delta with the digits that matter.

    Example:
        >>> amount(12.5), amount(1234.0), amount(1e-6), amount(0.0)
        ('12.5', '1,234', '1e-06', '0')
    """
    if value and abs(value) < 1e-3:
        return f"{value:.3g}"
    return f"{value:,.3f}".rstrip("0").rstrip(".")
