"""Every demonstration reports what was released, at the guarantee that its bundle has, beside what
needs no private row.
"""

from __future__ import annotations

import io
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.accounting import ShuffledChannel
from reticent.attacks import ReconstructionConfig
from reticent.datasets import load_adult_sample, load_digits
from reticent.datasets.table import Table
from reticent.demos import certified, fleet, posthoc, power, private_knn
from reticent.demos.page import Demonstration
from reticent.systems import CertifiedClassifier, PrivateKNNStudent
from reticent.tables import Categorical, Numeric, TabularSchema
from reticent.training.heads import HeadConfig
from reticent.training.staircases import response_on


def pictures() -> Demonstration:
    settings = posthoc.suggested("digits", seed=0)
    tiny = replace(
        settings,
        epsilon=8.0,
        embedder=replace(settings.embedder, epochs=25),
        epochs=15,
        head=HeadConfig(epochs=40, batch_size=100, hidden=(32,)),
        attack=ReconstructionConfig(epochs=25, batch_size=100),
        copies=1,
        train_rows=600,
        test_rows=200,
    )
    return posthoc.run_demo(load_digits(), tiny)


def rows() -> Demonstration:
    tiny = power.Settings(epochs=2, training_rows=600, held_out_rows=160)
    return power.run_demo("adult-sample", tiny)


def student() -> Demonstration:
    settings = private_knn.suggested("digits", seed=0)
    assert settings.student is not None
    short = replace(settings.student, epochs=2)
    return private_knn.run_demo(load_digits(), settings.set_params(student=short, queries=(30, 10)))


def devices() -> Demonstration:
    pytest.importorskip("cryptography.hazmat.primitives.hpke", exc_type=ImportError)
    return fleet.run_demo(fleet.Settings(devices=300, public=300, hostile=20, held_out=400))


RUNS: dict[str, Callable[[], Demonstration]] = {
    "posthoc": pictures,
    "power": rows,
    "knn": student,
    "certified": lambda: certified.run_demo("adult-sample"),
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
def test_figures_are_released_ones_and_the_page_holds_them(demos, read_page, name) -> None:
    demo = demos[name]
    json.dumps(demo.results, allow_nan=False)
    assert "seeded" not in demo.results.get("sampler", "")
    if "guarantee" in demo.results:
        assert demo.system.guarantee.to_dict() == demo.results["guarantee"]
    read_page(demo.page())
    assert all(f"{100 * fact.share:.0f}\u00a0%" in demo.page() for fact in demo.facts)


def test_embeddings_are_worth_more_than_the_constant(demos) -> None:
    right, similar = (demos["posthoc"].results[x] for x in ("accuracy", "structural_similarity"))
    assert right[posthoc.OURS] > right[posthoc.CONSTANT] + 0.3
    assert right[posthoc.BARE] >= right[posthoc.RESPONSE]
    assert similar[posthoc.BARE] > similar[posthoc.OURS]


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


def test_response_on_a_label_that_follows_from_one_column() -> None:
    """The town is right on .9, the response on .8808 of those."""
    schema = TabularSchema((Numeric("age", 0, 1), Categorical("town", ("a", "b"))))
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 3_000)
    table = np.empty((3_000, 2), dtype=object)
    table[:, 0] = random.random(3_000)
    lie = random.random(3_000) > 0.9
    table[:, 1] = np.array(["a", "b"])[np.where(lie, 1 - labels, labels)]
    known, held = slice(0, 2_000), slice(2_000, None)
    made = Table(
        "towns",
        ("age", "town"),
        *(table[known], labels[known], table[held], labels[held]),
        ("no", "yes"),
        "made up",
    )
    parts = power.Parts(made, schema, power.Settings())
    exact = np.eye(2)
    assert parts.learnt(exact[parts.labels[1]], exact[parts.labels[2]]) == pytest.approx(1.0)
    told = response_on(np.arange(2), epsilon=2.0)[0, 0]
    right = 0.9 * told + 0.1 * (1 - told)
    assert abs(parts.response(epsilon=2.0) - right) < 4 * np.sqrt(right * (1 - right) / 1_000)
    assert parts.raw(epsilon=2.0) < right


def test_the_student_is_scored_on_pictures_that_it_never_saw(demos) -> None:
    demo, data = demos["knn"], load_digits()
    results, model = demo.results, demo.system
    assert isinstance(model, PrivateKNNStudent)
    assert results["private records"] + results["public pictures"] == len(data.train_images)
    assert results["queries"] == 40
    assert results["student"] == (model.predict(data.test_images) == data.test_labels).mean()
    assert results["epsilon"] == model.guarantee.epsilon <= 4.0
    assert results["others"][private_knn.BARE] > results["student"]
    models = [way for name, way in results["others"].items() if name.endswith("to publish")]
    assert min(models) > 0.6  # one charge for all answers; votes pay for each of them


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


def test_a_record_is_mapped_the_same_in_any_company() -> None:
    random = np.random.default_rng(0)
    table = random.normal(size=(60, 17))
    white = certified.whitening(random.normal(size=(100, 17)), 5, floor=0.02)
    together = white(table)
    for index in range(0, 60, 7):
        np.testing.assert_array_equal(white(table[index : index + 1])[0], together[index])


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
