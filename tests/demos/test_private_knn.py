"""The Private-kNN demonstration: its numbers add up, its page shows them, its files are whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reticent.datasets import load_digits
from reticent.demos import private_knn
from reticent.demos.page import Demonstration
from reticent.systems import PrivateKNNStudent

_suggested = private_knn.suggested


def _short(data: str, *, seed: int) -> PrivateKNNStudent:
    student = _suggested(data, seed=seed)
    assert student.student is not None
    return student.set_params(student=replace(student.student, epochs=2), queries=(30, 10))


@pytest.fixture(scope="module")
def demo() -> Demonstration:
    return private_knn.run_demo(load_digits(), _short("digits", seed=0))


def test_results_are_those_of_the_student(demo: Demonstration) -> None:
    data, results, student = load_digits(), demo.results, demo.system
    assert isinstance(student, PrivateKNNStudent)
    assert results["private records"] + results["public pictures"] == len(data.train_images)
    assert results["queries"] == 40
    assert results["student"] == (student.predict(data.test_images) == data.test_labels).mean()
    assert results["released right"] > 0.5
    assert results["epsilon"] == student.guarantee.epsilon <= 4.0


def test_every_way_is_measured_at_the_same_total(demo: Demonstration) -> None:
    others = demo.results["others"]
    assert others[private_knn.BARE] > demo.results["student"]
    assert {name.partition(",")[0] for name in others} == {
        *("noisy gradient descent", "moments", "cells", "linear vote", "PATE"),
        *("votes with a budget for each record", private_knn.BARE, private_knn.CONSTANT),
    }
    models = [right for name, right in others.items() if name.endswith("a model to publish")]
    assert min(models) > 0.6  # one charge for all answers; votes pay for each of them


def test_pate_has_the_noise_of_the_total(demo: Demonstration) -> None:
    data, private = load_digits(), demo.results["private records"]
    parts = data.train_rows[:private], data.train_labels[:private], data.train_rows[private:]
    assert isinstance(demo.system, PrivateKNNStudent)
    total = demo.system.guarantee
    low, high = (
        (
            private_knn._pate(*parts, data, replace(total, epsilon=epsilon)) == data.test_labels
        ).mean()
        for epsilon in (0.5, 1000.0)
    )
    assert low < 0.3
    assert high > 0.8
