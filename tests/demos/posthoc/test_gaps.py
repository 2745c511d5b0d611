"""Shares of the gap and the setting that is led with, on numbers worked out by hand."""

from __future__ import annotations

import pytest

from reticent.demos.posthoc.gaps import NOTHING, UNPROTECTED, gaps_closed, headline


def test_a_gap_is_counted_from_the_attackers_similarity() -> None:
    rows = [
        {"name": "ours", "epsilon": 2.0, "accuracy": 0.7},
        {"name": "other", "epsilon": 2.0, "accuracy": 0.1},
    ]
    attacks = [
        {"sees": "values", "epsilon": 2.0, "ssim": 0.7},
        {"sees": UNPROTECTED, "epsilon": None, "ssim": 0.9},
        {"sees": NOTHING, "epsilon": 0.0, "ssim": 0.5},
    ]
    [gap] = gaps_closed(rows, attacks, without=0.95, sees={"ours": "values"})
    assert gap["closed"] == pytest.approx(0.5)
    assert gap["lost"] == pytest.approx(0.25)
    attacks[1]["ssim"] = 0.5  # the attacker has learnt nothing
    [gap] = gaps_closed(rows, attacks, without=0.95, sees={"ours": "values"})
    assert gap["closed"] == 0.0


def test_the_headline_loses_least_among_those_that_close_enough() -> None:
    gaps = [
        {"epsilon": 1.0, "closed": 0.6, "lost": 0.4},
        {"epsilon": 2.0, "closed": 0.4, "lost": 0.2},
        {"epsilon": 5.0, "closed": 0.1, "lost": 0.0},
    ]
    assert headline(gaps, least=0.3) == {**gaps[1], "least": 0.3, "met": True}
    assert headline(gaps, least=0.5) == {**gaps[0], "least": 0.5, "met": True}
    assert headline(gaps, least=0.05) == {**gaps[2], "least": 0.05, "met": True}
    assert headline(gaps, least=0.9) == {**gaps[0], "least": 0.9, "met": False}


def test_of_releases_that_lose_nothing_that_of_the_smallest_epsilon_is_led_with() -> None:
    gaps = [
        {"epsilon": 5.0, "closed": 0.4, "lost": -0.005},
        {"epsilon": 10.0, "closed": 0.4, "lost": -0.02},
    ]
    assert headline(gaps, least=0.3)["epsilon"] == 5.0
