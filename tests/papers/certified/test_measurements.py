"""Cached certificates, noisy argmax against drawn labels, and the number of queries against a
plain search.
"""

from __future__ import annotations

import numpy as np
import pytest

from papers.certified.measurements import (
    gaussian_argmax,
)
from papers.certified.problems import GLOBAL, OURS, PUBLISHED, PURE, Answers
from reticent.core import AddRemove
from reticent.mechanisms import StabilityResponse
from reticent.noise import SeededSampler
from reticent.published.certified import GlobalSensitivityResponse, SmoothCauchy

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


@pytest.mark.parametrize("sigma", [0.8, 3.0, 40.0])
def test_gaussian_argmax_against_discrete_draws(sigma: float) -> None:
    answers = synthetic()
    ones = answers.votes.sum(axis=0)
    counts = np.tile(np.stack([7 - ones, ones]), 25)
    noisy = counts + SeededSampler(4).discrete_gaussian(counts.shape, sigma=sigma)
    measured = (
        noisy.argmax(axis=0) == np.tile(answers.truth, 25)
    ).mean()  # argmax: label 0 where they tie
    assert abs(gaussian_argmax(answers, sigma) - measured) < 4.5 * 0.5 / np.sqrt(25 * 4000)
