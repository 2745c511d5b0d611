"""The demonstration reports what it released, and ours beats the published obfuscators under the
same proof.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.datasets import load_digits
from reticent.demos.posthoc.demo import LABEL, OURS, PLAIN, at, best_published, inked, run_demo
from reticent.demos.posthoc.settings import suggested


def test_every_row_carries_the_same_proved_total(tiny_outcome):
    rows = tiny_outcome.results["rows"]
    assert {(row["name"], row["epsilon"]) for row in rows} == {
        (name, epsilon) for name in (OURS, PLAIN, LABEL, "Encoder", "C-N") for epsilon in (2.0, 8.0)
    }
    for row in rows:
        assert row["guarantee"]["epsilon"] == pytest.approx(row["epsilon"])
        assert row["guarantee"]["delta"] <= 1e-5
        assert row["guarantee"]["adjacency"]["radius"] == 0.3
        assert 0.0 <= row["accuracy"] <= 1.0
        assert "seeded" not in row["sampler"]


def test_training_through_the_noise_pays(tiny_outcome):
    """Even after seconds of training the margin is far above the 3 points of one standard error."""
    results = tiny_outcome.results
    ours = at(results, OURS, 8.0)["accuracy"]
    assert ours > results["accuracy_by_chance"] + 0.3
    assert (
        at(results, OURS, 2.0)["accuracy"]
        > at(results, best_published(results), 2.0)["accuracy"] + 0.06
    )


def test_the_attack_does_better_the_more_it_sees(tiny_outcome):
    error = {
        row["sees"]: row["l2"] for row in tiny_outcome.results["attacks"] if row["epsilon"] != 2.0
    }
    assert (
        error["the embedding as it is sent today"] < error["our release"] < error["nothing"] * 1.02
    )


def test_neighbours_lie_at_distance_r_and_pictures_in_the_unit_range(tiny_outcome):
    pictures = tiny_outcome.pictures
    assert pictures.neighbours.shape == (10, 4, 8, 8)
    assert pictures.names == tuple(str(digit) for digit in range(10))
    for shown in (
        pictures.originals,
        pictures.decoded,
        pictures.neighbours,
        pictures.attacked_embedding,
    ):
        assert shown.min() >= 0.0
        assert shown.max() <= 1.0


def test_results_are_plain_json(tiny_outcome):
    again = json.loads(json.dumps(tiny_outcome.results, allow_nan=False))
    assert again["data"]["held_out"] == 200
    assert sum(again["seconds"].values()) > 0


def test_ink_is_told_from_photographs():
    ink = np.zeros((3, 8, 8), np.float32)
    ink[:, 3:5, 3:5] = 1.0
    assert inked(ink)
    assert not inked(np.full((3, 8, 8), 0.5, np.float32))


@pytest.mark.parametrize("data", ["digits", "mnist", "fashion", "utkface"])
def test_settings_are_suggested_for_every_data_set(data):
    assert suggested(data, seed=3).embedder.seed == 3


def test_settings_that_cannot_be_are_refused():
    settings = suggested("digits", seed=0)
    with pytest.raises(UnknownName, match="data='cats'"):
        suggested("cats", seed=0)
    with pytest.raises(InvalidParameter, match="rising order"):
        replace(settings, epsilons=(2.0, 1.0))
    with pytest.raises(InvalidParameter, match=r"least_closed=0\.0"):
        replace(settings, least_closed=0.0)
    with pytest.raises(UnknownName, match="published='Magic'"):
        replace(settings, published=("Magic",))
    with pytest.raises(InvalidInput, match=r"expected pictures of shape \(28, 28\), got \(8, 8\)"):
        run_demo(load_digits(), suggested("mnist", seed=0))


def test_the_bundle_is_that_of_the_headline(tiny_outcome):
    found = tiny_outcome.results["headline"]
    assert set(found) == {OURS, LABEL}
    assert tiny_outcome.encoder.epsilon == found[OURS]["epsilon"]
    for name, gap in found.items():
        assert (gap["closed"] >= gap["least"]) is gap["met"]
        assert gap["lost"] == pytest.approx(
            tiny_outcome.results["accuracy_without_protection"]
            - at(tiny_outcome.results, name, gap["epsilon"])["accuracy"]
        )


def test_the_gap_is_counted_from_the_attacks_and_the_accuracies(tiny_outcome):
    results = tiny_outcome.results
    gaps = {(gap["name"], gap["epsilon"]): gap for gap in results["gap"]}
    assert set(gaps) == {(name, epsilon) for name in (OURS, LABEL) for epsilon in (2.0, 8.0)}
    ssim = {(row["sees"], row["epsilon"]): row["ssim"] for row in results["attacks"]}
    bare, blind = ssim["the embedding as it is sent today", None], ssim["nothing", 0.0]
    label = gaps[LABEL, 2.0]
    assert bare - label["closed"] * (bare - blind) == pytest.approx(ssim["our label", 2.0])
    assert label["lost"] == pytest.approx(
        results["accuracy_without_protection"] - at(results, LABEL, 2.0)["accuracy"]
    )
    assert label["closed"] > gaps[OURS, 8.0]["closed"]  # a label says less than an embedding
