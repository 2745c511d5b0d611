"""Sentences appear where their numbers ask for them, and say those numbers."""

from __future__ import annotations

from typing import Any

from reticent.demos.power.explanations import on_accuracy, on_facts
from reticent.demos.power.page import _MECHANISMS
from reticent.systems.power.query import MECHANISMS


def row(
    radius: float | None,
    epsilon: float,
    ours: float,
    *,
    raw: float = 0.76,
    response: float = 0.8,
    ceiling: float | None = None,
) -> dict[str, Any]:
    return {
        "radius": radius,
        "epsilon": epsilon,
        "accuracy": {"boosted": ours},
        "raw columns": {"boosted": raw},
        "label response": response,
        "ceiling": ceiling,
    }


def results(*rows: dict[str, Any]) -> dict[str, Any]:
    return {
        "settings": {"server_shown": "boosted", "stored": (3.0, None), "radii": (None, 0.1)},
        "data": {"columns": 14, "held_out": 1600},
        "accuracy_by_chance": 0.76,
        "rows": list(rows),
    }


def test_numbers_that_look_wrong_are_explained() -> None:
    found = on_facts(results(row(None, 3.0, 0.82, response=0.82), row(0.1, 3.0, 0.815)))
    assert "weaker and no more accurate here" in found[0]
    assert "always naming one class gets (76 %): 14 columns" in found[1]
    assert "82 % at ε = 3. For this one question it is as good" in found[2]


def test_what_needs_no_explanation_gets_none() -> None:
    [only] = on_facts(results(row(None, 3.0, 0.82, raw=0.8), row(0.1, 3.0, 0.86)))
    assert only.endswith("right on 80 % at ε = 3.")


def test_a_ceiling_at_the_majority_and_scatter_are_named() -> None:
    found = on_accuracy(
        results(
            row(None, 1.0, 0.76, ceiling=0.76),
            row(None, 3.0, 0.82, ceiling=0.83),
            row(0.1, 1.0, 0.82),
            row(0.1, 3.0, 0.81),
        )
    )
    assert found[0].startswith("At ε = 1 every line for any two records")
    assert found[1].startswith("A line that falls while ε rises is one run's scatter")
    assert found[1].endswith("good to about 2 points.")
    assert on_accuracy(results(row(None, 3.0, 0.82, ceiling=0.83), row(0.1, 3.0, 0.86))) == []


def test_every_mechanism_has_words_on_the_page() -> None:
    assert set(_MECHANISMS) == set(MECHANISMS)
