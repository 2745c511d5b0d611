"""The power demonstration on a tiny setting: its figures add up, its attacks are measured, its
page and picture stand alone.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from html import unescape

import numpy as np
import pytest
from PIL import Image

from reticent.attacks.hijacking import HijackingConfig
from reticent.core.errors import InvalidParameter, UnknownName
from reticent.datasets import load_adult_sample
from reticent.datasets.adult import NUMERIC
from reticent.demos.power.attacks import NEAR, NOTHING, PUBLISHED
from reticent.demos.power.chart import figure, half_width, shown_range
from reticent.demos.power.demo import (
    DEMONSTRATIONS,
    SERVERS,
    PowerDemo,
    PowerDemoSettings,
    demo_table,
    run_demo,
    summary,
)
from reticent.demos.power.page import page
from reticent.tables.known_schemas import adult_schema
from reticent.training.power.published import PowerConfig

OURS = ("any two records", "within 0.1")


def tiny(*, seed: int = 0, examples: int = 3) -> PowerDemoSettings:
    return PowerDemoSettings(
        epsilons=(3.0,),
        epochs=2,
        training_rows=600,
        held_out_rows=160,
        examples=examples,
        power_config=PowerConfig(steps=3, batch_size=64, learning_rate=1e-3),
        hijacking=HijackingConfig(epochs=4, batch_size=50),
        seed=seed,
    )


@pytest.fixture(scope="module")
def adult() -> PowerDemo:
    return run_demo("adult-sample", tiny())


@pytest.fixture(scope="module")
def cancer() -> PowerDemo:
    return run_demo("breast-cancer", tiny(examples=1))


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


def test_accuracies_have_their_floor_and_ceiling(adult: PowerDemo) -> None:
    results = adult.results
    json.dumps(results, allow_nan=False)
    _, _, labels = cut_of_adult()
    majority = max(labels.mean(), 1 - labels.mean())
    assert results["accuracy_by_chance"] == pytest.approx(majority)
    assert [row["neighbours"] for row in results["rows"]] == list(OURS)
    best = max(results["accuracy_without_protection"].values())
    told = 1 / (1 + math.exp(-3.0))  # randomised response tells the truth that often
    assert results["rows"][0]["ceiling"] == pytest.approx(
        max(majority, told * best + (1 - told) * (1 - best))
    )
    assert results["rows"][1]["ceiling"] is None
    for row in results["rows"]:
        assert set(row["accuracy"]) == set(row["raw columns"]) == set(SERVERS)
        # Answers of 160 rows: above the ceiling by more than 6 standard errors would be a fault
        # (false alarm below 1e-8).
        assert row["accuracy"]["boosted"] <= (row["ceiling"] or 1.0) + 6 * math.sqrt(0.25 / 160)
        assert "seeded" not in row["sampler"]
        assert 0.5 < row["label response"] < told  # a model of 300 public rows, one of two labels
    assert results["data"] | {"public": 300, "private": 300, "held_out": 160} == results["data"]
    assert adult.encoder.guarantee.epsilon == results["guarantee"]["epsilon"] == 3.0
    assert f"{results['rows'][1]['accuracy']['boosted']:.1%} for within 0.1" in summary(results)


def test_attacks_are_measured_against_the_words_of_the_table(adult: PowerDemo) -> None:
    attacks = adult.results["attacks"]
    qualities = {quality["sees"]: quality for quality in attacks["qualities"]}
    assert list(qualities) == [PUBLISHED, *OURS, NOTHING]
    assert 0 < attacks["published_mode"]["released"] <= 1
    assert attacks["published_mode"]["to_three_digits"] > 0.99
    assert qualities[PUBLISHED]["categories"] == 1.0
    assert qualities[PUBLISHED]["number_error"] < 1e-3
    # The floor, from words instead of codes: how often a held-out row has the public rows' most
    # frequent category.
    public, held, _ = cut_of_adult()
    schema = adult_schema()
    hits = []
    for index, attribute in enumerate(schema.attributes):
        if attribute.name not in NUMERIC:
            values = [row[index] for row in public]
            first = max(attribute.categories, key=values.count)
            hits.append(np.mean([row[index] == first for row in held]))
    assert qualities[NOTHING]["categories"] == pytest.approx(np.mean(hits))
    for (
        name
    ) in OURS:  # not better than the floor by much: the whole record is hidden, or all but its kind
        assert qualities[name]["categories"] < qualities[NOTHING]["categories"] + 0.15
    row = adult.results["rows"][0]
    letters = {"code": 2, "score-code": row["values"]}.get(row["mechanism"], 160)
    assert 2 <= attacks["different_guesses"][OURS[0]] <= letters


def test_examples_are_real_rows_and_marked_right(adult: PowerDemo) -> None:
    attacks = adult.results["attacks"]
    assert len(attacks["examples"]) == 3
    _, held, _ = cut_of_adult()
    schema = adult_schema()
    texts = [[str(value).removesuffix(".0") for value in row] for row in held]
    for example in attacks["examples"]:
        row = held[texts.index([word.replace(",", "") for word in example["record"]])]
        assert example["guesses"][PUBLISHED]["words"] == example["record"]
        for guess in example["guesses"].values():
            for attribute, word, right, true in zip(
                schema.attributes, guess["words"], guess["right"], row, strict=True
            ):
                if attribute.name not in NUMERIC:
                    assert right == (word == true)
                elif attribute.scale == "linear":
                    far = abs(float(word.replace(",", "")) - true) / (
                        attribute.upper - attribute.lower
                    )
                    if abs(far - NEAR) > 0.01:  # words are rounded
                        assert right == (far < NEAR)


def test_the_rows_file_holds_the_held_out_rows_without_labels(adult: PowerDemo) -> None:
    header, *lines = csv.reader(io.StringIO(adult.held_out.decode()))
    assert header == [attribute.name for attribute in adult_schema().attributes]
    _, held, _ = cut_of_adult()
    assert [
        [float(cell) if name in NUMERIC else cell for name, cell in zip(header, line, strict=True)]
        for line in lines
    ] == held


def test_a_table_of_numbers_alone(cancer: PowerDemo) -> None:
    results = cancer.results
    json.dumps(results, allow_nan=False)
    assert all(quality["categories"] is None for quality in results["attacks"]["qualities"])
    errors = {
        quality["sees"]: quality["number_error"] for quality in results["attacks"]["qualities"]
    }
    assert errors[PUBLISHED] < 1e-3 < errors[OURS[0]]
    html = page(cancer).replace("\u00a0", " ")
    assert "categories right" not in html
    assert "error of numbers" in html
    assert Image.open(io.BytesIO(figure(results))).width > 1000
    header = cancer.held_out.decode().splitlines()[0]
    assert header.startswith("mean radius,mean texture,")


@pytest.mark.parametrize("name", ["adult", "cancer"])
def test_the_page_stands_alone_and_can_be_read_aloud(
    name: str, request: pytest.FixtureRequest, read_page
) -> None:
    assert sum(tag == "svg" for tag, _ in read_page(page(request.getfixturevalue(name)))) >= 1


def test_the_page_says_what_was_computed(adult: PowerDemo) -> None:
    results, html = adult.results, page(adult).replace("\u00a0", " ")
    for row in results["rows"]:
        for server in SERVERS:
            assert (
                f"{100 * row['accuracy'][server]:.1f} ({100 * row['raw columns'][server]:.1f})"
                in html
            )
    assert f"{100 * results['rows'][0]['ceiling']:.1f}" in html
    assert f"<b>{100 * results['rows'][0]['accuracy']['boosted']:.0f} %</b>" in html
    for quality in results["attacks"]["qualities"]:
        assert f"{100 * quality['all_categories']:.1f} %" in html
    assert "With the encoder in hand, 100 % of those came back to three digits" in html
    assert (
        "A step of 0.1 is, for example, 7.3 of age, 150,000 of fnlwgt, 1.5 of education-num, "
        "9.8 of hours-per-week" in " ".join(html.split())
    )
    assert html.count("<svg") == 2
    card = adult.encoder.card()
    for sentence in (card.protected, *card.assumptions, *card.not_protected):
        assert sentence in unescape(html)
    for words in (
        "reticent card bundle",
        "reticent release bundle --input held-out.csv --output released.npz",
        "CC BY 4.0",
    ):
        assert words in html
    for example in results["attacks"]["examples"]:
        assert f"<td>{example['record'][2]}</td>" in html
        assert f"<td>{sum(example['guesses'][NOTHING]['right'])} of 14</td>" in html
    assert not re.search(r"fully anonymous|completely private|100 % private", html)


def test_withheld_rows_are_shown_without_an_inversion() -> None:
    outcome = run_demo("breast-cancer", _none_released())
    assert (
        outcome.results["attacks"]["published_mode"] | {"released": 0.0, "to_three_digits": None}
        == outcome.results["attacks"]["published_mode"]
    )
    assert [quality["sees"] for quality in outcome.results["attacks"]["qualities"]] == [
        "any two records",
        NOTHING,
    ]
    html = page(outcome).replace("\u00a0", " ")
    assert "It withheld 100 % of the held-out rows" in html
    assert "came back to three digits" not in html
    assert figure(outcome.results).startswith(b"\x89PNG")


def _none_released() -> PowerDemoSettings:
    return PowerDemoSettings(
        epsilons=(3.0,),
        radii=(None,),
        epochs=1,
        training_rows=120,
        held_out_rows=60,
        examples=1,
        score=1e-6,
        power_config=PowerConfig(steps=1, batch_size=32),
        hijacking=HijackingConfig(epochs=1),
    )


def test_the_picture_and_its_axis(adult: PowerDemo) -> None:
    low, high = shown_range(adult.results)
    values = [
        row[key]["boosted"] for row in adult.results["rows"] for key in ("accuracy", "raw columns")
    ]
    assert low < min(values)
    assert high > max(values)
    assert low * 20 == pytest.approx(round(low * 20))
    with Image.open(io.BytesIO(figure(adult.results))) as picture:
        assert picture.format == "PNG"
        assert picture.width > 1500
    assert half_width(0.8, 1600) == pytest.approx(1.96 * 0.01)


def test_bad_requests() -> None:
    with pytest.raises(UnknownName, match="adult-sample, adult, breast-cancer"):
        run_demo("iris")
    with pytest.raises(InvalidParameter, match="one of the epsilons"):
        PowerDemoSettings(stored=(2.0, None))
    assert demo_table(DEMONSTRATIONS[0])[0].name == "adult-sample"


@pytest.mark.browser
def test_it_opens_in_a_browser(adult: PowerDemo, open_page) -> None:
    assert open_page(page(adult)) > 10_000
