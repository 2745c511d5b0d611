"""certify, release and card on fitted bundles."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from reticent.accounting import Ledger, Scope
from reticent.core import Guarantee
from reticent.systems import PosthocEncoder


def test_release_writes_values_mask_and_receipt(command, encoder_bundle, inputs, tmp_path):
    answer = command("release", encoder_bundle, "--input", inputs, "--output", tmp_path / "out.npz")
    assert (answer.status, answer.err) == (0, "")
    assert "20 answer(s)" in answer.out
    assert "epsilon=4, delta=0" in answer.out
    with np.load(tmp_path / "out.npz", allow_pickle=False) as written:
        assert written["values"].shape == (20, 2)
        assert written["withheld"].tolist() == [False] * 20
        receipt = json.loads(written["receipt"].tobytes())
    assert receipt["answers"] == 20
    assert receipt["seeded"] is False
    assert receipt["guarantee"]["epsilon"] == pytest.approx(4.0)
    assert receipt["bundle"] == PosthocEncoder.load(encoder_bundle).bundle_identity_


def test_two_releases_differ_and_nothing_is_overwritten_unasked(command, encoder_bundle, inputs, tmp_path):
    words = ("release", encoder_bundle, "--input", inputs, "--output", tmp_path / "out.npz")
    assert command(*words).status == 0
    first = (tmp_path / "out.npz").read_bytes()
    again = command(*words)
    assert again.status == 2
    assert "exists already" in again.err
    assert (tmp_path / "out.npz").read_bytes() == first
    assert command(*words, "--overwrite").status == 0
    with np.load(tmp_path / "out.npz") as second, np.load(io.BytesIO(first)) as before:
        assert not np.array_equal(before["values"], second["values"])


def test_release_of_labels_keeps_the_users_words(command, classifier_bundle, inputs, tmp_path):
    assert command("release", classifier_bundle, "--input", inputs, "--output", tmp_path / "out.npz").status == 0
    with np.load(tmp_path / "out.npz", allow_pickle=False) as written:
        assert set(written["values"]) <= {"setosa", "versicolor", "virginica"}


def test_release_books_its_cost_and_stops_when_nothing_is_left(command, encoder_bundle, inputs, tmp_path):
    cost = PosthocEncoder.load(encoder_bundle).guarantee
    book = Ledger.create(tmp_path / "book.sqlite")
    book.grant(Scope(subject="patient-7"), Guarantee(30 * cost.epsilon, 0.0, cost.adjacency))
    book.close()
    words = ("release", encoder_bundle, "--input", inputs, "--ledger", tmp_path / "book.sqlite", "--subject", "patient-7")
    first = command(*words, "--output", tmp_path / "one.npz")
    assert (first.status, first.err) == (0, "")
    assert "booked as" in first.out
    second = command(*words, "--output", tmp_path / "two.npz")
    assert second.status == 12
    assert not (tmp_path / "two.npz").exists()


def test_certify_prints_bounds_and_says_that_they_are_private(command, encoder_bundle, inputs, tmp_path):
    answer = command("certify", encoder_bundle, "--input", inputs, "--radius", "0.1", "--output", tmp_path / "bounds.npy")
    assert (answer.status, answer.err) == (0, "")
    assert "as private as its input" in answer.out
    bounds = np.load(tmp_path / "bounds.npy")
    system = PosthocEncoder.load(encoder_bundle)
    np.testing.assert_array_equal(bounds, system.query_.bound.bound(system.embed(np.load(inputs)), 0.1))
    assert f"{np.median(bounds):.6g}" in answer.out


def test_card_as_text_and_as_json(command, encoder_bundle):
    text = command("card", encoder_bundle)
    assert text.out.rstrip("\n") == PosthocEncoder.load(encoder_bundle).card().to_markdown().rstrip("\n")
    plain = json.loads(command("card", encoder_bundle, "--json").out)
    assert plain["guarantee"]["adjacency"]["radius"] == 0.2
