"""The curves are where the numbers say, and their names do not cover each other."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from reticent.core import Scope
from reticent.ledger.charges import Budget
from reticent.ledger.reports import Spending
from reticent.service.dashboard.chart import NARROW, WIDE, spending_chart


def series(*ends: float, name: str = "ward") -> list[Spending]:
    """Budgets of 10 that were spent in equal steps."""
    at = np.arange(1, 11).astype("datetime64[s]").astype("datetime64[us]")
    return [
        Spending(
            Budget(Scope(subject=f"{name} {place}"), "", 10_000_000, 0, int(end * 1e6), 0),
            at,
            end * np.arange(1, 11) / 10,
        )
        for place, end in enumerate(ends)
    ]


def points(svg: str) -> list[list[tuple[float, float]]]:
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())]
        for line in re.findall(r'points="([^"]*)"', svg)
    ]


@pytest.mark.parametrize("frame", [WIDE, NARROW])
def test_a_curve_goes_from_nothing_to_what_was_spent(frame: object) -> None:
    chart = spending_chart(series(5.0))
    assert chart is not None
    assert isinstance(frame, type(WIDE))
    (line,) = points(chart.wide if frame is WIDE else chart.narrow)
    assert line[0] == pytest.approx((frame.x(0), frame.y(0)), abs=0.06)
    assert line[-1] == pytest.approx((frame.x(1), frame.y(0.5)), abs=0.06)
    for (x, y), (later, above) in pairwise(line):
        assert x <= later
        assert y >= above
        assert x == later or y == above  # level, or straight up: what was spent stays spent


def test_names_keep_apart_and_inside() -> None:
    chart = spending_chart(series(9.9, 9.8, 9.7, 9.6, 9.5))
    assert chart is not None
    heights = sorted(float(y) for y in re.findall(r'class="end[^>]*y="([\d.]+)"', chart.wide))
    assert len(heights) == 5
    assert min(np.diff(heights)) >= 30
    assert heights[0] > 0
    assert heights[-1] + 15 < WIDE.height
    low = spending_chart(series(0.1, 0.1, 0.1, 0.1, 0.1))
    assert low is not None
    heights = sorted(float(y) for y in re.findall(r'class="end[^>]*y="([\d.]+)"', low.wide))
    assert min(np.diff(heights)) >= 30
    assert heights[-1] + 15 < WIDE.height
