"""certify, release and card on fitted bundles of every kind."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
from sklearn.datasets import load_iris

from reticent.audit.subjects import named_object
from reticent.cli import bundles
from reticent.core import Guarantee, Scope
from reticent.core.errors import CorruptBundle
from reticent.core.files import output_file
from reticent.ledger import Ledger
from reticent.systems import (
    CodeEncoder,
    LabelAware,
    PosthocClassifier,
    PosthocEncoder,
)


def test_release_books_its_cost_and_stops_when_nothing_is_left(
    command, vectors_bundle, inputs, tmp_path
):
    cost = PosthocEncoder.load(vectors_bundle).guarantee
    book = Ledger.create(tmp_path / "book.sqlite")
    book.grant(Scope(subject="patient-7"), Guarantee(30 * cost.epsilon, 0.0, cost.adjacency))
    book.close()
    words = (
        "release",
        vectors_bundle,
        "--input",
        inputs,
        "--ledger",
        tmp_path / "book.sqlite",
        "--subject",
        "patient-7",
    )
    first = command(*words, "--output", tmp_path / "one.npz")
    assert (first.status, first.err) == (0, "")
    assert "booked as" in first.out
    second = command(*words, "--output", tmp_path / "two.npz")
    assert second.status == 12
    assert not (tmp_path / "two.npz").exists()


def test_certify_prints_bounds_and_says_that_they_are_private(
    command, vectors_bundle, inputs, tmp_path
):
    answer = command(
        "certify",
        vectors_bundle,
        "--input",
        inputs,
        "--radius",
        "0.1",
        "--output",
        tmp_path / "bounds.npz",
    )
    assert (answer.status, answer.err) == (0, "")
    assert "as private as its input" in answer.out
    with np.load(tmp_path / "bounds.npz") as stored:
        bounds = stored["bound"]
    system = PosthocEncoder.load(vectors_bundle)
    np.testing.assert_array_equal(
        bounds, system.query_.bound.bound(system.embed(np.load(inputs)), 0.1)
    )
    assert f"{np.median(bounds):.6g}" in answer.out


def test_card_as_text_and_as_json(command, vectors_bundle):
    expected = PosthocEncoder.load(vectors_bundle).card()
    text = command("card", vectors_bundle)
    assert (text.status, text.err) == (0, "")
    stored = (vectors_bundle / "card.md").read_text().rstrip("\n")
    assert text.out.rstrip("\n") == expected.to_markdown().rstrip("\n") == stored
    plain = command("card", vectors_bundle, "--json")
    assert plain.status == 0
    assert json.loads(plain.out) == expected.to_dict()


def test_a_card_is_shown_without_arrays_and_not_when_anything_was_changed(
    command, vectors_bundle, tmp_path
):
    program = (
        "import sys; from reticent.cli.main import run; status = run(sys.argv[1:]);"
        "sys.exit(status or len({'numpy', 'scipy', 'sqlalchemy', 'torch'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program, "card", vectors_bundle], check=True)
    for name in ("card.md", "weights.safetensors", "bundle.json", "manifest.json"):
        folder = shutil.copytree(vectors_bundle, tmp_path / name)
        with (folder / name).open("ab") as file:
            file.write(b" ")
        assert command("card", folder).status == CorruptBundle.code


def test_room_for_long_labels_is_set_aside(command, inputs, tmp_path, monkeypatch):
    iris = load_iris()
    names = np.array(["a" * 400, "b" * 400, "c"])[iris.target]
    settings = {
        "delta": 0.0,
        "radius": 0.2,
        "embedder": "identity",
        "classifier": LabelAware(hidden=(8,), epochs=1),
        "random_state": 0,
    }
    folder = (
        PosthocClassifier(epsilon=8.0, mechanism="noisy-max", **settings)
        .fit(iris.data, names)
        .save(tmp_path / "bundle")
    )
    sizes = []

    def watched(path, *, size, overwrite):
        sizes.append(size)
        return output_file(path, size=size, overwrite=overwrite)

    monkeypatch.setattr(bundles, "output_file", watched)
    assert (
        command("release", folder, "--input", inputs, "--output", tmp_path / "out.npz").status == 0
    )
    assert sizes[0] >= (tmp_path / "out.npz").stat().st_size > 20 * 4 * 400


OWN = """
import torch
from torch import nn


class Own(nn.Sequential):
    pass  # may compute anything, so it is not built from a file


def network():
    torch.manual_seed(0)
    return Own(nn.Linear(4, 2), nn.ReLU())
"""


def test_a_module_of_ones_own_is_named_on_every_command(command, inputs, tmp_path) -> None:
    source = tmp_path / "own_network.py"
    source.write_text(OWN)
    iris = load_iris()
    named = f"{source}:network"
    encoder = CodeEncoder(epsilon=2.0, embedder=named_object(named)(), random_state=0)
    bundle = encoder.fit(iris.data, iris.target).save(tmp_path / "bundle")
    rows = tmp_path / "rows.npz"
    np.savez(rows, X=iris.data)
    vectors = PosthocEncoder(
        epsilon=2.0, delta=0.0, radius=0.3, embedder=named_object(named)(), obfuscator="identity"
    )
    posthoc = vectors.fit(iris.data, iris.target).save(tmp_path / "posthoc")
    np.save(tmp_path / "labels.npy", iris.target)
    learnt = ("--labels", tmp_path / "labels.npy", "--output", tmp_path / "model")
    asked = (
        ("radius", rows, "--bundle", posthoc),
        ("release", bundle, "--input", rows, "--output", tmp_path / "out.npz"),
        ("audit", "bundle", bundle, "--input", rows, "--draws", 2000),
        ("attack", "bundle", bundle, "--input", rows, "--no-decoder", "--trials", 1000),
        ("card", bundle, "--json"),
        ("train-model", bundle, "--values", tmp_path / "out.npz", *learnt),
    )
    for words in asked:
        assert command(*words).status == 2
        answer = command(*words, "--embedder", named)
        assert answer.status == 0, answer.err
    assert np.load(tmp_path / "out.npz")["values"].shape[0] == len(iris.data)
    assert "any two inputs" in command("card", bundle).out
    assert "linf distance 0.3" in command("card", posthoc).out
    for wrong in (f"{source}:other", f"{tmp_path / 'none.py'}:network", "no colon"):
        assert command(*asked[-1], "--embedder", wrong).status == 2


def test_answers_that_are_charged_are_not_predicted_for_nothing(
    command, labels_bundle, inputs, tmp_path
):
    told = command("predict", labels_bundle, "--input", inputs, "--output", tmp_path / "told.csv")
    assert told.status != 0
    assert not (tmp_path / "told.csv").exists()
