"""Lines and levels are the computed numbers, every release once, ours on top."""

from __future__ import annotations

import math

import pytest

from reticent.demos.label_response import RESPONSE
from reticent.demos.posthoc.accuracy_lines import accuracy_levels, accuracy_series
from reticent.demos.posthoc.demo import LABEL, OURS, PLAIN, best_published


def test_every_release_is_a_line_with_its_numbers(tiny_outcome):
    results = tiny_outcome.results
    lines = {series.name: series for series in accuracy_series(results)}
    assert set(lines) == {row["name"] for row in results["rows"]} | {RESPONSE}
    assert list(lines)[-3:] == [PLAIN, LABEL, OURS]
    assert lines[best_published(results)].style == "best"
    for row in results["rows"]:
        points = {x: (y, half) for x, y, half in lines[row["name"]].points}
        assert points[row["epsilon"]] == (row["accuracy"], 1.96 * row["standard_error"])


def test_randomised_response_is_the_closed_form_of_the_unprotected_model(tiny_outcome):
    results = tiny_outcome.results
    right = results["accuracy_without_protection"]
    [line] = [one for one in accuracy_series(results) if one.name == RESPONSE]
    for epsilon, share, half in line.points:
        truth = math.exp(epsilon) / (math.exp(epsilon) + 9)
        assert share == pytest.approx(right * truth + (1 - right) * (1 - truth) / 9)
        assert half == 0.0
    assert [level.y for level in accuracy_levels(results)] == [
        right,
        results["accuracy_by_chance"],
    ]
