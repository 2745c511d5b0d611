"""``reticent radius``: points or inputs of a bundle, a table, JSON, a page."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.systems import PowerEncoder
from tests.systems.power.made import RADII, SCHEMA, made_query


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


def test_rows_that_no_steps_lead_between_have_no_caps(command, tmp_path, monkeypatch) -> None:
    """Where categories are read as they are, a cap for rows h radii apart would be false; and with
    a radius for each attribute distances of encoded rows say nothing.
    """
    encoder = PowerEncoder(epsilon=1.0, delta=0.0, radius=0.1, schema=SCHEMA)
    rows = tmp_path / "rows.csv"
    rows.write_text("age\n1\n")
    for query in (
        made_query(0.1),
        made_query(RADII),
    ):
        encoder.query_ = query
        monkeypatch.setattr("reticent.cli.radius.open_bundle", lambda *asked: encoder)
        answer = command("radius", rows, "--bundle", tmp_path)
        assert answer.status == 2
        assert "nothing is promised about other rows" in answer.err
