"""Steps of a ledger's spending: heights, grants and what is left."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from reticent import plots
from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.ledger import Ledger

ONE = Guarantee(0.25, 0.0, AddRemove())


def test_steps_rise_by_what_was_charged(tmp_path: Path):
    with closing(Ledger.create(tmp_path / "book.sqlite")) as book:
        book.grant(Scope(subject="ward"), Guarantee(2.0, 0.0, AddRemove()))
        for answer in range(3):
            with book.reserve(
                Scope(subject="ward"), PrivacyEvent("laplace", ONE), answers=1
            ) as charged:
                charged.commit(str(answer))
        series = book.spending(points=4)
    axes = plots.budget(plots.one_panel()[1], series)
    grant, line = axes.lines
    assert grant.get_ydata() == [1.0, 1.0]
    heights = line.get_ydata()
    assert (heights[0], heights[-1]) == pytest.approx((0.0, 0.375))
    assert heights[1:] == pytest.approx(series[0].epsilon / 2.0)
    assert line.get_drawstyle() == "steps-post"
    [name] = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "ward" in name
    assert name.endswith("(left 1.25 of 2)")
