"""The chart puts points where their values say, and keeps its labels apart."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from reticent.pages.line_chart import Level, Series, line_chart

WORDS = {"title": "a < b", "description": "words", "x_name": "x", "y_name": "y"}


def test_heights_are_linear_and_x_is_logarithmic():
    points = ((1.0, 0.0, 0.0), (10.0, 0.5, 0.0), (100.0, 1.0, 0.0))
    drawn = ElementTree.fromstring(line_chart([Series("one", points, "ours")], [], **WORDS))
    marks = [(float(mark.get("cx")), float(mark.get("cy"))) for mark in drawn.iter("circle")]
    assert marks[1][0] == pytest.approx((marks[0][0] + marks[2][0]) / 2, abs=0.1)
    assert marks[1][1] == pytest.approx((marks[0][1] + marks[2][1]) / 2, abs=0.1)
    assert marks[0][1] > marks[2][1]


@pytest.mark.parametrize("heights", [(0.5, 0.5, 0.5), (0.9, 0.91, 0.2), (0.1, 0.11, 0.12)])
def test_labels_never_overlap(heights):
    series = [
        Series(f"line {index}", ((1.0, 0.3, 0.0), (2.0, height, 0.02)), "ours")
        for index, height in enumerate(heights)
    ]
    chart = line_chart(series, [Level("level", heights[0])], **WORDS)
    ends = sorted(float(y) for y in re.findall(r'class="end [^"]*" x="[\d.]+" y="([\d.]+)"', chart))
    assert len(ends) == 4
    assert min(after - before for before, after in pairwise(ends)) >= 16.9


def test_a_part_of_the_axis_fills_the_chart():
    points = ((1.0, 0.70, 0.0), (10.0, 0.80, 0.05), (100.0, 0.95, 0.0))
    line = Series("one", points, "ours")
    drawn = ElementTree.fromstring(line_chart([line], [], y_range=(0.7, 0.9), name="near", **WORDS))
    heights = [float(mark.get("cy")) for mark in drawn.iter("circle")]
    grid = {
        one.text: float(one.get("y")) - 4 for one in drawn.iter("text") if one.text.endswith("%")
    }
    assert list(grid) == ["70 %", "75 %", "80 %", "85 %", "90 %"]
    assert heights[0] == pytest.approx(grid["70 %"], abs=0.15)
    assert heights[1] == pytest.approx(grid["80 %"], abs=0.15)
    assert heights[2] == pytest.approx(grid["90 %"], abs=0.15)  # beyond the end: drawn at the end
    [spread] = [one for one in drawn.iter("line") if one.get("class") == "spread"]
    ends = sorted((float(spread.get("y1")), float(spread.get("y2"))))
    assert ends == pytest.approx([grid["85 %"], grid["75 %"]], abs=0.15)
    assert drawn.get("aria-labelledby") == "near-title near-description"
    assert {one.get("id") for one in drawn.iter() if one.get("id")} == {
        "near-title",
        "near-description",
    }
