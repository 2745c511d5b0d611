"""Sentences stand where their numbers do, and nowhere else."""

from __future__ import annotations

from typing import Any

from reticent.demos.certified.expected_accuracy import OURS, PUBLISHED
from reticent.demos.certified.explanations import (
    on_accuracy,
    on_facts,
    on_fraction,
    on_many,
    on_total,
)
from reticent.demos.certified.rungs import CONSTANT, DESCENT, PUBLIC, VOTE


def results(**changed: Any) -> dict[str, Any]:
    at = {OURS: 0.9, PUBLISHED: 0.6, VOTE: 0.8, DESCENT: 0.7, PUBLIC: 0.75, CONSTANT: 0.55}
    found = {
        "accuracy_at_epsilon": at | changed.pop("at", {}),
        "accuracy_noise_free": 0.95,
        "accuracy_released": 0.9,
        "accuracy": {"series": {OURS: [[0.1, 0.9]], PUBLISHED: [[0.1, 0.8]]}},
        "many": {"series": {"ours: certified": [[1, 0.9], [10, 0.6]], DESCENT: [[1, 0.7]] * 2}},
        "classes": 2,
        "public_rows": 200,
        "median_distance": 10.0,
        "k_max": 30,
        "epsilon": 0.1,
        "totals": [{"answers": 1, "epsilon": 0.1}],
    }
    return found | changed


def test_nothing_is_explained_where_nothing_is_odd() -> None:
    plain = results()
    assert on_facts(plain) == []
    assert len(on_accuracy(plain)) == 1  # what guarantee each has, always
    assert on_fraction(plain) == []
    assert on_total(plain) == []


def test_a_better_rival_is_named() -> None:
    (said,) = on_facts(results(at={VOTE: 0.93}))
    assert "linear vote has 93.0 %" in said
    (said,) = on_facts(results(at={PUBLIC: 0.92}))
    assert "nothing private is needed" in said


def test_numbers_that_look_like_mistakes_are_explained() -> None:
    assert "no mistake" in on_facts(results(accuracy_released=0.96))[0]
    assert "less than a guess" in on_facts(results(at={CONSTANT: 0.45}))[0]
    drowned = results(accuracy={"series": {OURS: [[0.1, 0.9]], PUBLISHED: [[0.1, 0.51]]}})
    assert "50 % at the left" in on_accuracy(drowned)[1]
    assert PUBLISHED in on_accuracy(drowned)[1]
    assert OURS not in on_accuracy(drowned)[1]
    assert "lie on each other" in on_accuracy(results(at={PUBLIC: 0.951}))[1]
    assert "survive 30" in on_fraction(results(median_distance=30.0))[0]
    assert "costs 0.09" in on_total(results(totals=[{"answers": 1, "epsilon": 0.09}]))[0]
    # What is printed alike is no difference to explain.
    assert on_total(results(totals=[{"answers": 1, "epsilon": 0.09999999}])) == []


def test_where_certified_answers_are_ahead() -> None:
    assert "up to 1 of" in on_many(results())[1]
    behind = {"series": {"ours: certified": [[1, 0.6]], DESCENT: [[1, 0.7]]}}
    assert "at every number shown" in on_many(results(many=behind))[1]
