"""Bundles of algorithms as printed: every command refuses one without --research, and takes it with
the word. An audit tests the statement of the paper.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone

from reticent.accounting import PrivateKnnSteps
from reticent.core.errors import GuaranteeRefuted
from reticent.published import (
    PowerConfig,
    PublishedCertifiedClassifier,
    PublishedCertifiedEnsemble,
    PublishedObfuscator,
    PublishedPosthocEncoder,
    PublishedPowerEncoder,
    PublishedPrivateKNN,
    Switches,
)
from reticent.systems import Features
from reticent.tables import TabularSchema

RANDOM = np.random.default_rng(0)
LABELS = np.tile([0, 1], 60)
ROWS = np.clip(RANDOM.normal(0.35, 0.1, (120, 2)) + 0.3 * LABELS[:, None], 0.0, 1.0)
POSTHOC = PublishedPosthocEncoder(
    epsilon=1.0,
    delta=0.05,
    radius=0.1,
    maximum_radius=2.0,
    obfuscator=PublishedObfuscator(outputs=2, hidden=(4,), epochs=2),
    switches=Switches.as_coded(),
    random_state=0,
)
CERTIFIED = {"epsilon": 1.0, "classes": [0, 1], "k_max": 20}
REFUTED, KEPT = True, False
UNFITTED = {
    # Each with the verdict of an audit. A noise for a fifth of the constant is too small.
    "posthoc": (clone(POSTHOC).set_params(proposal=0.02), REFUTED),
    "sound": (clone(POSTHOC).set_params(switches=Switches.repaired()), KEPT),
    "power": (
        PublishedPowerEncoder(
            epsilon=3.0,
            alpha=0.05,
            schema=TabularSchema.numbers(2, 0.0, 1.0),
            training=PowerConfig(steps=2),
            bandwidth_factor=5.0,
            random_state=0,
        ),
        REFUTED,
    ),
    "kNN": (
        PublishedPrivateKNN(
            steps=PrivateKnnSteps(
                queries=120,
                answers=100,
                neighbours=9,
                sampling_probability=0.3,
                sigma_votes=2.0,
                threshold=5.0,
                sigma_screening=3.0,
                shared_subsample=True,
            ),
            delta=1e-5,
            classes=[0, 1],
            features=Features(range=(0.0, 1.0)),
        ),
        KEPT,
    ),
    "certified": (
        PublishedCertifiedClassifier(**CERTIFIED, certified_at=(1, 5, 20)),
        REFUTED,
    ),
    "repaired": (PublishedCertifiedClassifier(**CERTIFIED, certified_at=()), KEPT),
    "ensemble": (
        PublishedCertifiedEnsemble(**CERTIFIED, certified_at=(1, 5, 20), members=4),
        REFUTED,
    ),
}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    folder = tmp_path_factory.mktemp("printed")
    np.save(folder / "rows.npy", ROWS)
    made = {"rows": folder / "rows.npy"}
    for name, (system, _) in UNFITTED.items():
        made[name] = system.fit(ROWS, LABELS).save(folder / name, research=True)
    return made


@pytest.mark.parametrize("name", list(UNFITTED))
def test_an_audit_tests_what_the_paper_states(command, bundles, name):
    asked = ("audit", "bundle", bundles[name], "--input", bundles["rows"])
    refused = command(*asked)
    assert refused.status != 0
    assert "--research" in refused.err
    draws = "2000" if name == "kNN" else "20000"
    found = command(*asked, "--research", "--draws", draws, "--seed", "0")
    system, refuted = UNFITTED[name]
    assert found.status == (GuaranteeRefuted.code if refuted else 0)
    words = " ".join(found.out.split())
    assert f"epsilon {system.stated().epsilon:.4g}" in words
    assert system.spent().describe() in words


@pytest.mark.parametrize("name", ["posthoc", "power", "sound"])
def test_an_attack_stands_beside_what_the_paper_states(command, bundles, name):
    asked = ("attack", "bundle", bundles[name], "--input", bundles["rows"])
    assert "--research" in command(*asked).err
    found = command(*asked, "--research", "--no-decoder", "--trials", "1000", "--seed", "0")
    _, refuted = UNFITTED[name]
    assert found.status == (GuaranteeRefuted.code if refuted else 0)
    assert "stated cap" in found.out


def test_what_protects_records_is_not_attacked_by_its_inputs(command, bundles):
    found = command(
        "attack", "bundle", bundles["certified"], "--input", bundles["rows"], "--research"
    )
    assert "cannot be attacked" in found.err


def test_local_bounds_are_those_of_the_switches(command, bundles):
    asked = ("certify", bundles["posthoc"], "--input", bundles["rows"], "--radius", "0.1")
    assert "--research" in command(*asked).err
    found = command(*asked, "--research")
    assert found.status == 0
    system, _ = UNFITTED["posthoc"]
    assert f"{system.bound_.global_bound():.6g}" in found.out
    assert system.spent().describe() in " ".join(found.out.split())
    assert (
        command(
            "certify", bundles["power"], "--input", bundles["rows"], "--radius", "1", "--research"
        ).status
        != 0
    )


@pytest.mark.parametrize("name", list(UNFITTED))
def test_a_card_and_answers_need_the_word(command, bundles, name, tmp_path):
    output = tmp_path / "out.csv"
    for asked in (
        ("card", bundles[name]),
        ("card", bundles[name], "--json"),
        ("release", bundles[name], "--input", bundles["rows"], "--output", output),
    ):
        refused = command(*asked)
        assert refused.status != 0
        assert "--research" in refused.err
        assert not output.exists()
        found = command(*asked, "--research")
        assert found.status == 0
        assert "not private" in found.out.lower()
    assert output.read_text().splitlines()[0].endswith(",withheld")


def test_nothing_is_booked_of_it(command, bundles, tmp_path):
    found = command(
        "release", bundles["posthoc"], "--input", bundles["rows"], "--output", tmp_path / "out.csv",
        "--ledger", tmp_path / "ledger.db", "--research",
    )  # fmt: skip
    assert found.status != 0
    assert not (tmp_path / "out.csv").exists()


def test_a_survey_of_it_shows_caps_at_what_is_sound(command, bundles):
    asked = ("radius", bundles["rows"], "--bundle", bundles["posthoc"], "--json")
    assert "--research" in command(*asked).err
    caps = json.loads(command(*asked, "--research").out)["caps"]
    system, _ = UNFITTED["posthoc"]
    assert [cap["epsilon"] for cap in caps] == [pytest.approx(system.spent().epsilon)]
