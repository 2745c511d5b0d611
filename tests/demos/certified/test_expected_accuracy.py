"""Expected accuracies against drawn labels."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core import AddRemove
from reticent.demos.certified.expected_accuracy import GLOBAL, OURS, PUBLISHED, PURE, Answers
from reticent.mechanisms import StabilityResponse
from reticent.mechanisms.global_sensitivity import GlobalSensitivityResponse
from reticent.mechanisms.smooth_cauchy import SmoothCauchy
from reticent.noise import SeededSampler

MECHANISMS = {OURS: StabilityResponse, PUBLISHED: SmoothCauchy, GLOBAL: GlobalSensitivityResponse}


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


def test_expected_accuracy_of_ten_classes() -> None:
    answers = synthetic(classes=10)
    mechanism = StabilityResponse(classes=10, epsilon=1.0, adjacency=AddRemove(1))
    drawn = mechanism.release(
        np.tile(answers.labels, 25), np.tile(answers.distances, 25), sampler=SeededSampler(2)
    )
    measured = (drawn == np.tile(answers.truth, 25)).mean()
    assert abs(PURE[OURS](answers, 1.0) - measured) < 4.5 * 0.5 / np.sqrt(25 * 4000)
