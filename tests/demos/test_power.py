"""The power demonstration on a tiny setting: its figures add up, its attack is measured, its page
shows both.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from reticent.attacks.hijacking import HijackingConfig
from reticent.datasets import load_adult_sample
from reticent.datasets.adult import NUMERIC
from reticent.demos.page import Chart, Demonstration
from reticent.demos.power import (
    NOTHING,
    OURS,
    RESPONSE,
    Settings,
    half_width,
    run_demo,
)
from reticent.systems import PowerEncoder
from reticent.tables.known_schemas import adult_schema

SHARES = ("accuracy", "balanced_accuracy")
KINDS = ("any two records", "within 0.1")


@pytest.fixture(scope="module")
def adult() -> Demonstration:
    return run_demo("adult-sample", tiny())


@pytest.fixture(scope="module")
def cancer() -> Demonstration:
    return run_demo("breast-cancer", tiny())


def tiny() -> Settings:
    return Settings(
        epsilons=(3.0,),
        epochs=2,
        training_rows=600,
        held_out_rows=160,
        hijacking=HijackingConfig(epochs=4, batch_size=50),
    )


def cut_of_adult() -> tuple[list[list[object]], list[list[object]], np.ndarray]:
    """Public rows, held-out rows and held-out labels of the tiny setting, from the documented
    cut.
    """
    table = load_adult_sample()
    public = np.random.default_rng(0).permutation(6400)[:300]
    held = np.random.default_rng(0).permutation(1600)[:160]
    return (
        table.train_rows[public].tolist(),
        table.test_rows[held].tolist(),
        table.test_labels[held],
    )


def test_accuracies_have_their_floor_and_ceiling(adult: Demonstration) -> None:
    results = adult.results
    json.dumps(results, allow_nan=False)
    _, _, labels = cut_of_adult()
    majority = max(labels.mean(), 1 - labels.mean())
    assert results["accuracy_by_chance"] == pytest.approx(majority)
    assert [row["neighbours"] for row in results["rows"]] == list(KINDS)
    best = results["accuracy_without_protection"]
    told = 1 / (1 + math.exp(-3.0))  # randomised response tells the truth that often
    assert results["rows"][0]["ceiling"] == pytest.approx(
        max(majority, told * best + (1 - told) * (1 - best))
    )
    assert results["rows"][1]["ceiling"] is None
    for row in results["rows"]:
        assert {OURS, RESPONSE, "raw columns"} <= set(row["scores"])
        # Answers of 160 rows: above the ceiling by more than 6 standard errors would be a fault
        # (false alarm below 1e-8).
        accuracy = row["scores"][OURS]["accuracy"]
        assert accuracy <= (row["ceiling"] or 1.0) + 6 * math.sqrt(0.25 / 160)
        assert "seeded" not in row["sampler"]
        assert 0.5 < row["label response"] < told  # a model of 300 public rows, one of two labels
    assert results["data"] | {"public": 300, "private": 300, "held_out": 160} == results["data"]
    assert isinstance(adult.system, PowerEncoder)
    assert adult.system.guarantee.epsilon == results["guarantee"]["epsilon"] == 3.0


def test_the_attack_is_measured_against_the_words_of_the_table(adult: Demonstration) -> None:
    attacks = adult.results["attacks"]
    assert list(attacks) == [*KINDS, NOTHING]
    # The floor, from words instead of codes: how often a held-out row has the public rows' most
    # frequent category.
    public, held, _ = cut_of_adult()
    hits = []
    for index, attribute in enumerate(adult_schema().attributes):
        if attribute.name not in NUMERIC:
            values = [row[index] for row in public]
            first = max(attribute.categories, key=values.count)
            hits.append(np.mean([row[index] == first for row in held]))
    assert attacks[NOTHING]["categories"] == pytest.approx(np.mean(hits))
    for kind in KINDS:  # not by much: the whole record is hidden, or all but its kind
        assert attacks[kind]["categories"] < attacks[NOTHING]["categories"] + 0.15


def test_the_page_shows_the_figures_that_were_measured(adult: Demonstration, read_page) -> None:
    demo, results = adult, adult.results
    assert sum(tag == "svg" for tag, _ in read_page(demo.page())) == 2
    charts = [one for part in demo.sections for one in part.shown if isinstance(one, Chart)]
    for row, chart in zip(results["rows"], charts, strict=True):
        lines = {one.name: one.points[0] for one in chart.series}
        held_out, ours = results["data"]["held_out"], row["scores"][OURS]["accuracy"]
        assert lines["ours"] == (3.0, ours, half_width(ours, held_out))
        assert lines["raw columns"][1] == row["raw columns"]
        assert lines["label response"][1] == row["label response"]
        assert (row["ceiling"] is None) == ("ceiling" not in lines)
        low, high = chart.y_range
        assert all(low <= y <= high for _, y, _ in lines.values())
