"""The Private-kNN demonstration: its numbers add up, its page stands alone, its files are whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from reticent.cli.main import run
from reticent.datasets import load_digits
from reticent.demos.private_knn import demo as knn_demo
from reticent.systems import PrivateKNNStudent
from reticent.training.progress import silent


def _short(data: str, *, seed: int) -> PrivateKNNStudent:
    student = _suggested(data, seed=seed)
    assert student.student is not None
    return student.set_params(student=replace(student.student, epochs=2), queries=(30, 10))


_suggested = knn_demo.suggested


@pytest.fixture(scope="module")
def demo() -> knn_demo.KnnDemo:
    return knn_demo.run_demo(load_digits(), _short("digits", seed=0), report=silent)


def test_results_are_those_of_the_student(demo: knn_demo.KnnDemo) -> None:
    data = load_digits()
    assert demo.results["private records"] + demo.results["public pictures"] == len(
        data.train_images
    )
    assert demo.results["queries"] == 40
    assert (
        demo.results["student"]
        == (demo.student.predict(data.test_images) == data.test_labels).mean()
    )
    assert demo.results["released right"] > 0.5
    assert demo.results["epsilon"] == demo.student.guarantee.epsilon <= 4.0
    html = knn_demo.page(demo).replace("\u00a0", " ")
    assert "10 % of" not in html
    assert f"{100 * demo.results['released right']:.0f} %" in html
    assert "Whether any one private record was there" in html
    assert '<p class="lead">Every single private record is protected from whoever gets' in html
    for name, right in demo.rungs.items():
        assert f'<th scope="row">{name}</th><td>{100 * right:.0f} %</td>' in html
    assert demo.rungs[knn_demo.BARE] > demo.results["student"]
    assert {name.partition(",")[0] for name in demo.rungs} == {
        *("noisy gradient descent", "moments", "cells", "radius votes", "linear vote", "PATE"),
        *("votes with a budget for each record", knn_demo.BARE, "the most frequent answer"),
    }
    models = [right for name, right in demo.rungs.items() if name.endswith("a model to publish")]
    assert min(models) > 0.6  # one charge for all answers; votes pay for each of them


def test_pate_has_the_noise_of_the_total(demo: knn_demo.KnnDemo) -> None:
    data, private = load_digits(), demo.results["private records"]
    parts = data.train_rows[:private], data.train_labels[:private], data.train_rows[private:]
    low, high = (
        (
            knn_demo._pate(*parts, data, replace(demo.student.guarantee, epsilon=epsilon))
            == data.test_labels
        ).mean()
        for epsilon in (0.5, 1000.0)
    )
    assert low < 0.3
    assert high > 0.8


def test_the_page_stands_alone_and_can_be_read_aloud(demo: knn_demo.KnnDemo, read_page) -> None:
    assert sum(tag == "img" for tag, _ in read_page(knn_demo.page(demo))) == 1


@pytest.mark.browser
def test_it_opens_in_a_browser(demo: knn_demo.KnnDemo, open_page) -> None:
    assert open_page(knn_demo.page(demo)) > 10_000


def test_the_command_writes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knn_demo, "suggested", _short)
    assert run(["demo", "knn", "--out", str(tmp_path / "demo")]) == 0
    names = sorted(path.name for path in (tmp_path / "demo").iterdir())
    assert names == ["bundle", "card.md", "figure.png", "index.html", "results.json"]
    results = json.loads((tmp_path / "demo" / "results.json").read_text())
    assert results["data"] == "digits"
    loaded = PrivateKNNStudent.load(tmp_path / "demo" / "bundle")
    assert np.isclose(
        (loaded.predict(load_digits().test_images) == load_digits().test_labels).mean(),
        results["student"],
    )
    with Image.open(tmp_path / "demo" / "figure.png") as picture:
        assert picture.width > 400


@pytest.mark.slow
def test_the_demonstration_learns_digits() -> None:
    demo = knn_demo.run_demo(load_digits(), _suggested("digits", seed=0), report=silent)
    # The noise is not seeded. In 46 runs these were .73 to .89 and .74 to .93; floors are six
    # standard deviations below, and always naming one digit is right for .1.
    assert demo.results["released right"] > 0.6
    assert demo.results["student"] > 0.6
