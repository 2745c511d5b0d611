"""Attacks beside their cap: what lies above it is marked, and nothing else."""

from __future__ import annotations

import math

import pytest

from reticent import plots
from reticent.core.errors import InvalidInput

EPSILONS = (0.5, 1.0, 2.0)
CAP = plots.Series(
    "cap", tuple((epsilon, 1 / (1 + math.exp(-epsilon)), 0.0) for epsilon in EPSILONS), "published"
)


def drawn(*points: tuple[float, float, float]):
    seen = plots.Series("guesser", points, "best")
    return plots.attack(plots.one_panel()[1], [seen], CAP, chance=0.5)


def crosses(axes):
    return [line.get_xydata()[0].tolist() for line in axes.lines if line.get_marker() == "x"]


def test_a_point_whose_interval_lies_above_the_cap_is_crossed():
    axes = drawn((0.5, 0.61, 0.01), (1.0, 0.80, 0.01), (2.0, 0.95, 0.2))
    assert crosses(axes) == [[1.0, 0.80]]
    assert [text.get_text() for text in axes.texts] == ["claim refuted", "guessing"]


def test_between_its_points_the_cap_is_linear_in_the_logarithm():
    middle = math.sqrt(2.0)  # halfway between 1 and 2
    cap = (CAP.points[1][1] + CAP.points[2][1]) / 2
    assert crosses(drawn((middle, cap + 0.002, 0.001))) == [[middle, cap + 0.002]]
    assert crosses(drawn((middle, cap + 0.0005, 0.001))) == []


@pytest.mark.parametrize(("epsilon", "words"), [(4.0, "from 0.5 to 2"), (0.1, "epsilon=0.1")])
def test_no_verdict_where_the_cap_is_unknown(epsilon: float, words: str):
    with pytest.raises(InvalidInput, match=words):
        drawn((epsilon, 0.99, 0.0))
