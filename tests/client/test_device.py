"""A device believes nothing: every changed bundle is refused, and what is spent is counted here."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import reticent
from reticent import CertifiedClassifier
from reticent.client import Device, Pin
from reticent.core.errors import (
    BudgetExceeded,
    CorruptBundle,
    InvalidInput,
    UntrustedSignature,
)
from reticent.release.bundle import Bundle, sign_bundle
from reticent.systems import ClippedDescent
from reticent.systems.loading import load
from tests.client.services import Running, key_files

BUNDLES = ["rows_bundle", "vectors_bundle", "labels_bundle"]


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A private and a public key file."""
    pytest.importorskip("cryptography")
    return key_files(tmp_path, "owner")


@pytest.mark.parametrize("name", BUNDLES)
def test_a_device_answers_as_the_estimator_does_and_charges_itself(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder, X = request.getfixturevalue(name), load_iris().data[:6]
    fitted = reticent.load(folder)
    with Device(folder, home=tmp_path) as device:
        assert device.bundle == fitted.bundle_identity_
        assert device.guarantee == fitted.guarantee
        assert device.card() == fitted.card()
        device.grant("me", epsilon=6 * device.guarantee.epsilon, delta=0.0)
        found = device.release(X, subject="me")
        assert found.values.shape == fitted.release(X).values.shape
        assert found.values.dtype == fitted.release(X).values.dtype
        assert found.receipt.booked
        with pytest.raises(BudgetExceeded):
            device.release(X[:1], subject="me")
        (budget,) = device.budget("me")
        assert budget.left_epsilon == 0
    answering = load(folder)
    same = answering.simulate(X, seed=3), fitted.simulate(X, seed=3)
    assert np.array_equal(same[0].values, same[1].values)


def test_every_row_may_have_its_own_subject_and_none_is_charged_unless_all_fit(
    rows_bundle: Path, tmp_path: Path
) -> None:
    with Device(rows_bundle, home=tmp_path) as device:
        device.grant("anna", epsilon=4.0, delta=0.0)
        X = load_iris().data[:2]
        with pytest.raises(BudgetExceeded):
            device.release(X, subject=["anna", "bert"])
        assert device.budget("anna")[0].spent_epsilon == 0
        device.grant("bert", epsilon=4.0, delta=0.0)
        device.release(X, subject=["anna", "bert"])
        assert device.budget("bert")[0].left_epsilon == 0


def test_the_ledger_of_a_device_outlives_it(rows_bundle: Path, tmp_path: Path) -> None:
    with Device(rows_bundle, home=tmp_path) as device:
        device.grant("me", epsilon=4.0, delta=0.0)
        device.release(load_iris().data[:1], subject="me")
    with Device(rows_bundle, home=tmp_path) as device, pytest.raises(BudgetExceeded):
        device.release(load_iris().data[:1], subject="me")


def changed(folder: Path, target: Path, card: str | None = None, **plan: Any) -> Path:
    """A bundle with other settings, whose manifest fits them: what somebody on the way would do."""
    stored = Bundle.read(folder)
    settings = {**stored.settings, "plan": {**stored.settings["plan"], **plan}}
    if "requirement" in settings:
        known = {name: plan[name] for name in ("radius",) if name in plan}
        settings["plan"] = stored.settings["plan"]
        settings["requirement"] = {**settings["requirement"], **known}
    text = stored.card if card is None else card
    replace(stored, settings=settings, card=text).write(target)
    return target


@pytest.mark.parametrize("plan", [{"epsilon": 400.0}, {"radius": 1e-3}])
def test_a_changed_epsilon_or_radius_is_refused_even_if_card_and_manifest_follow_it(
    plan: dict[str, Any], noisy_rows_bundle: Path, tmp_path: Path
) -> None:
    worse = changed(noisy_rows_bundle, tmp_path / "worse", **plan)
    with pytest.raises(CorruptBundle, match="card"):  # the old card is still there
        Device(worse, home=tmp_path)
    honest = load(worse).card().to_markdown()
    worse = changed(noisy_rows_bundle, tmp_path / "worse with its card", card=honest, **plan)
    with Device(noisy_rows_bundle, home=tmp_path) as device:
        pins = [Pin(fingerprint=device.fingerprint), Pin(epsilon=4.0, radius=math.inf)]
    for pin in pins:
        Device(noisy_rows_bundle, home=tmp_path, pin=pin).close()
        with pytest.raises(UntrustedSignature, match="pinned"):
            Device(worse, home=tmp_path, pin=pin)


def test_a_code_that_states_another_epsilon_than_its_table_has_is_refused(
    rows_bundle: Path, tmp_path: Path
) -> None:
    with pytest.raises(CorruptBundle):
        load(changed(rows_bundle, tmp_path / "worse", epsilon=400.0))


def test_weights_that_break_their_certificate_are_refused(
    vectors_bundle: Path, tmp_path: Path
) -> None:
    stored = Bundle.read(vectors_bundle)
    assert stored.settings["plan"]["path"] == "global"
    arrays = {
        name: 50.0 * array if name.startswith("released") else array
        for name, array in stored.arrays.items()
    }
    replace(stored, arrays=arrays).write(tmp_path / "steep")
    with pytest.raises(CorruptBundle, match="at least the bound over the whole domain"):
        Device(tmp_path / "steep", home=tmp_path)


def test_a_signature_is_checked_before_anything_is_believed(
    rows_bundle: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    private, public = keys
    signed = Path(shutil.copytree(rows_bundle, tmp_path / "signed"))
    with pytest.raises(UntrustedSignature, match="not signed"):
        Device(signed, trusted_key=public, home=tmp_path)
    sign_bundle(signed, key=private)
    Device(signed, trusted_key=public, home=tmp_path).close()
    worse = changed(rows_bundle, tmp_path / "worse", epsilon=400.0)
    shutil.copy(signed / "signature.json", worse)
    with pytest.raises(UntrustedSignature, match="changed since it was signed"):
        Device(worse, trusted_key=public, home=tmp_path)


def test_an_edition_before_one_that_was_seen_is_refused(
    rows_bundle: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    private, public = keys
    home = tmp_path / "home"
    editions = {}
    for number in (1, 2, 3):
        editions[number] = Path(shutil.copytree(rows_bundle, tmp_path / f"edition-{number}"))
        sign_bundle(editions[number], key=private, name="rows", edition=number)
    for number in (1, 3, 3):
        Device(editions[number], trusted_key=public, home=home).close()
    for number in (1, 2):
        with pytest.raises(UntrustedSignature, match="has seen edition 3"):
            Device(editions[number], trusted_key=public, home=home)
    Device(editions[2], trusted_key=public, home=tmp_path / "another home").close()
    sign_bundle(editions[1], key=private, name="other rows", edition=1)
    Device(editions[1], trusted_key=public, home=home).close()  # each name has its own editions


@pytest.mark.parametrize("change", [{"edition": 4}, {"name": "x"}, {"more": 1}, {"edition": -1}])
def test_name_and_edition_are_under_the_signature(
    rows_bundle: Path, tmp_path: Path, keys: tuple[Path, Path], change: dict[str, Any]
) -> None:
    private, public = keys
    signed = Path(shutil.copytree(rows_bundle, tmp_path / "signed"))
    file = sign_bundle(signed, key=private, name="rows", edition=3)
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(UntrustedSignature):
        Device(signed, trusted_key=public, home=tmp_path / "home")


def test_a_bundle_under_another_name_than_its_owner_gave_it_is_refused(
    service: Running, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    private, public = keys
    rows = service.folder / "bundles" / "rows"
    before = (rows / "signature.json").read_bytes()
    try:
        sign_bundle(rows, key=private, name="weak rows")
        with pytest.raises(UntrustedSignature, match="under another name"):
            Device(service.url, service.client, bundle="rows", trusted_key=public, home=tmp_path)
    finally:
        (rows / "signature.json").write_bytes(before)


def test_a_bundle_that_protects_records_is_not_for_a_device(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    fitted = CertifiedClassifier(
        epsilon=1.0,
        delta=0.0,
        k_max=2,
        classes=range(3),
        training=ClippedDescent(epochs=1, input_bound=8.0),
    )
    folder = fitted.fit(X, y).save(tmp_path / "records")
    with pytest.raises(InvalidInput, match="protects the records"):
        Device(folder, home=tmp_path)
