"""Every demonstration reports what was released, at the guarantee that its bundle has, beside what
needs no private row.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.accounting import ShuffledChannel
from reticent.attacks import DecoderConfig
from reticent.datasets import load_adult_sample, load_digits
from reticent.demos import certified, fleet, posthoc, power, released_model
from reticent.demos.page import Demonstration
from reticent.systems import CertifiedClassifier
from reticent.training.heads import HeadConfig


def pictures() -> Demonstration:
    settings = posthoc.Settings()
    tiny = replace(
        settings,
        epsilon=8.0,
        embedder=replace(settings.embedder, epochs=25),
        epochs=15,
        head=HeadConfig(epochs=40, batch_size=100, hidden=(32,)),
        attack=DecoderConfig(epochs=25, batch_size=100),
        copies=1,
        train_rows=600,
        test_rows=200,
    )
    return posthoc.run_demo(load_digits(), tiny)


def rows() -> Demonstration:
    tiny = power.Settings(epochs=2, training_rows=600, held_out_rows=160)
    return power.run_demo(tiny)


def devices() -> Demonstration:
    pytest.importorskip("cryptography.hazmat.primitives.hpke", exc_type=ImportError)
    return fleet.run_demo(fleet.Settings(devices=300, public=300, hostile=20, held_out=400))


RUNS: dict[str, Callable[[], Demonstration]] = {
    "posthoc": pictures,
    "power": rows,
    "model": lambda: released_model.run_demo(load_digits()),
    "certified": certified.run_demo,
    "fleet": devices,
}


class Made(dict[str, Demonstration]):
    """Demonstrations, each made when it is first asked for."""

    def __missing__(self, name: str) -> Demonstration:
        self[name] = made = RUNS[name]()
        return made


@pytest.fixture(scope="module")
def demos() -> dict[str, Demonstration]:
    return Made()


@pytest.mark.parametrize("name", RUNS)
def test_figures_are_released_ones_and_the_page_holds_them(demos, name) -> None:
    demo = demos[name]
    json.dumps(demo.results, allow_nan=False)
    assert "seeded" not in demo.results.get("sampler", "")
    if "guarantee" in demo.results:
        assert demo.system.guarantee.to_dict() == demo.results["guarantee"]
    page = demo.page()
    assert not re.search(r"https?:|@import|url\(|<script|javascript:", page)  # it stands alone
    assert all(f"{100 * fact.value:.0f}\u00a0%" in page for fact in demo.facts)


def test_a_row_has_its_floor_and_ceiling(demos) -> None:
    demo = demos["power"]
    right = demo.results["accuracy"]
    held = np.random.default_rng(0).permutation(1600)[:160]
    share = load_adult_sample().test_labels[held].mean()
    majority = max(share, 1 - share)
    assert right[power.CONSTANT] == pytest.approx(majority)
    told = 1 / (1 + math.exp(-3.0))  # randomised response tells the truth that often
    best = told * right[power.BARE] + (1 - told) * (1 - right[power.BARE])
    assert right[power.CEILING] == pytest.approx(max(majority, best))
    # Answers of 160 rows: above the ceiling by more than 6 standard errors would be a fault
    # (false alarm below 1e-8).
    assert right[power.OURS] <= right[power.CEILING] + 6 * math.sqrt(0.25 / 160)


def test_the_model_is_scored_on_pictures_that_it_never_saw(demos) -> None:
    demo, data = demos["model"], load_digits()
    results = demo.results
    assert results["private records"] + results["public pictures"] == len(data.train_images)
    assert results["model"] == (demo.system.predict(data.test_rows) == data.test_labels).mean()
    assert results["others"][released_model.BARE] > results["model"] > 0.7


def test_released_labels_are_as_right_as_was_promised(demos) -> None:
    demo = demos["certified"]
    results, system = demo.results, demo.system
    right = results["accuracy_at_epsilon"]
    # 1,600 independent labels: beyond 5 standard errors a false alarm is below 1e-6.
    spread = 5 * np.sqrt(0.25 / results["queries"])
    assert abs(results["accuracy_released"] - right[certified.OURS]) < spread
    assert results["guarantee"]["epsilon"] == 0.1
    assert results["totals"][1] <= 0.1
    assert isinstance(system, CertifiedClassifier)
    queries = np.load(io.BytesIO(demo.files["queries.npy"]))
    assert results["median_distance"] == np.median(system.stable_distances(queries)[1])
    assert right[certified.OURS] > max(right[certified.PUBLIC], right[certified.CONSTANT])


@pytest.mark.parametrize(
    ("epsilon", "majority"), list(itertools.product([0.3, 2.5], [0.5, 0.76, 0.9]))
)
def test_no_local_channel_passes_the_ceiling(epsilon: float, majority: float) -> None:
    """Oracle: the linear program over all prediction probabilities of eight kinds of row."""
    random = np.random.default_rng(2)
    share = np.full(8, 1 / 8)
    positive = np.sort(random.beta(0.4, 0.4, 8))
    positive = np.clip(positive * (1 - majority) / positive.mean(), 0, 1)
    rate = max(positive.mean(), 1 - positive.mean())
    bayes = float((share * np.maximum(positive, 1 - positive)).sum())
    gain = share * (2 * positive - 1)  # accuracy is sum share (1 - positive) + gain q
    rows, limits = [], []
    for one, other in itertools.permutations(range(8), 2):
        up, down = np.zeros(8), np.zeros(8)
        up[one], up[other] = 1, -np.exp(epsilon)
        down[one], down[other] = -1, np.exp(epsilon)
        rows += [up, down]
        limits += [0.0, np.exp(epsilon) - 1]
    found = linprog(-gain, A_ub=rows, b_ub=limits, bounds=(0, 1))
    best = float((share * (1 - positive)).sum() - found.fun)
    assert best == pytest.approx(
        power.best_local_accuracy(epsilon, majority=rate, bayes=bayes), abs=1e-9
    )


def test_a_fleet_sends_counts_and_prices_every_report(demos) -> None:
    """The interval leaves out the truth once in 10^4 runs (3.9 of its standard errors)."""
    demo = demos["fleet"]
    found, round_ = demo.results, demo.system.round
    assert sum(found["counts"]) == found["verdicts"]["taken"] == 300
    assert found["refused"] == 0
    channel = ShuffledChannel.of_table(
        np.unique(demo.system.encoder.query_.mechanism.shares.T.astype(np.int64), axis=0)
    )
    assert channel.delta(devices=280, epsilon=round_.central) <= round_.delta
    assert channel.delta(devices=280, epsilon=round_.central - 1e-3) > round_.delta
    income = found["labels"]["income"]
    for name, share, (low, high), truth in zip(
        income["names"],
        income["shares"],
        income["intervals"],
        found["truth"]["income"],
        strict=True,
    ):
        assert abs(share - truth) < 2 * (high - low) / 2, name
