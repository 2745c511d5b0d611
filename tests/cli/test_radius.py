"""``reticent radius``: points or inputs of a bundle, a table, JSON, a page."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def points(tmp_path):
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 200)
    path = tmp_path / "points.npz"
    np.savez(path, X=random.normal(size=(200, 3)) + labels[:, None], y=labels)
    return path


def test_points_of_a_file(command, points, tmp_path) -> None:
    page = tmp_path / "radius.html"
    words = (
        "radius", points, "--array", "X", "--column", "y", "--radius", "0.5", "--radius", "1",
        "--epsilon", "1", "--page", page,
    )  # fmt: skip
    answer = command(*words)
    assert answer.status == 0
    assert "median distance to the nearest row with another y: " in answer.out
    assert "0.731" in answer.out
    text = page.read_text(encoding="utf-8")
    assert "200" in text
    assert text.count("data:image/png") == 2
    assert "Rules that choose R" in text
    assert command(*words).status == 2  # the page exists
