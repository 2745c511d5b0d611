"""The certified demonstration end to end; its problems, and its expected accuracies against drawn
labels.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from reticent.core import AddRemove
from reticent.demos.certified import (
    CONSTANT,
    DESCENT,
    GLOBAL,
    OURS,
    PUBLIC,
    PUBLISHED,
    PURE,
    VOTE,
    Answers,
    problem_of,
    run_demo,
    whitening,
)
from reticent.demos.page import Demonstration
from reticent.mechanisms import StabilityResponse
from reticent.noise import SeededSampler
from reticent.published.certified import GlobalSensitivityResponse, SmoothCauchy
from reticent.systems import CertifiedClassifier

MECHANISMS = {OURS: StabilityResponse, PUBLISHED: SmoothCauchy, GLOBAL: GlobalSensitivityResponse}


@pytest.fixture(scope="module")
def blobs() -> Demonstration:
    return run_demo("blobs-close")


def test_what_is_released_is_what_was_promised(blobs: Demonstration) -> None:
    results = blobs.results
    expected = results["accuracy_at_epsilon"]
    # 2,000 independent labels: beyond 5 standard errors a false alarm is below 1e-6.
    spread = 5 * np.sqrt(0.25 / results["data"]["queries"])
    assert abs(results["accuracy_released"] - expected[OURS]) < spread
    assert expected[OURS] > results["accuracy_noise_free"] - 0.01
    assert max(expected[PUBLISHED], expected[GLOBAL]) < 0.6
    assert results["guarantee"]["epsilon"] == 0.03
    assert results["totals"][1] <= 0.03
    assert "seeded" not in results["sampler"]
    json.dumps(results, allow_nan=False)
    # 3,000 overlapping points in two columns are easy for all of them
    assert min(expected[name] for name in (OURS, VOTE, PUBLIC)) > 0.88 > 0.55 > expected[CONSTANT]


def test_fraction_is_that_of_the_classifier(blobs: Demonstration) -> None:
    assert isinstance(blobs.system, CertifiedClassifier)
    _, distances = blobs.system.stable_distances(problem_of("blobs-close").queries)
    for k, share in blobs.results["fraction"].items():
        assert share == (distances >= k).mean()


def test_ten_classes_have_no_published_line() -> None:
    results = run_demo("digits").results
    assert set(results["accuracy"]) == {OURS, VOTE, DESCENT}
    assert results["data"]["records"] == 1238  # 200 of them count as public
    assert results["accuracy_released"] > 0.5


def test_a_record_is_mapped_the_same_in_any_company() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 17))
    white = whitening(random.normal(size=(100, 17)), 5, floor=0.02)
    together = white(rows)
    for index in range(0, 60, 7):
        np.testing.assert_array_equal(white(rows[index : index + 1])[0], together[index])


def synthetic(classes: int = 2, members: int = 7, n: int = 4000) -> Answers:
    random = np.random.default_rng(0)
    truth = random.integers(0, classes, n)
    votes = np.where(
        random.random((members, n)) < 0.7, truth, random.integers(0, classes, (members, n))
    )
    labels = np.array([(votes == label).sum(axis=0) for label in range(classes)]).argmax(axis=0)
    return Answers(labels, random.integers(0, 6, n), votes, truth, classes)


@pytest.mark.parametrize("name", PURE)
def test_expected_accuracy_is_that_of_drawn_labels(name: str) -> None:
    answers, epsilon = synthetic(), 0.7
    extra = {"classes": 2} if name == OURS else {}
    mechanism = MECHANISMS[name](epsilon=epsilon, adjacency=AddRemove(1), **extra)
    repeats = 25
    drawn = mechanism.release(
        np.tile(answers.labels, repeats),
        np.tile(answers.distances, repeats),
        sampler=SeededSampler(1),
    )
    measured = (drawn == np.tile(answers.truth, repeats)).mean()
    # 100,000 labels: a false alarm beyond 4.5 standard errors, below 1e-5.
    assert abs(PURE[name](answers, epsilon) - measured) < 4.5 * 0.5 / np.sqrt(repeats * 4000)
    assert abs(PURE[name](answers, 2 * epsilon) - measured) > 4.5 * 0.5 / np.sqrt(repeats * 4000)
