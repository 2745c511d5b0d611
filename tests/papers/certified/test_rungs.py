"""Expected accuracies of every rung against drawn labels, cached certificates, and the number of
answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.certified import rungs
from papers.certified.measurements import (
    gaussian_argmax,
)
from papers.certified.problems import GLOBAL, OURS, PUBLISHED, PURE, Answers
from papers.certified.rungs import ADJACENCY, certified_curve, vote_curve
from reticent.core import AddRemove
from reticent.mechanisms import SignedDistanceRelease, StabilityResponse
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


@pytest.mark.parametrize("mechanism", ["stability", "signed-distance"])
def test_expected_accuracy_of_a_rung_is_that_of_drawn_labels(mechanism: str) -> None:
    random = np.random.default_rng(0)
    labels, truth = random.integers(0, 2, (2, 400))
    distances = random.integers(0, 12, 400)
    curve = certified_curve(labels, distances, truth, mechanism)
    if mechanism == "stability":
        release: StabilityResponse | SignedDistanceRelease = StabilityResponse(
            classes=2, epsilon=0.5, adjacency=ADJACENCY
        )
    else:
        release = SignedDistanceRelease.for_answers(
            classes=2, epsilon=0.5, delta=1e-5, answers=1, adjacency=ADJACENCY
        )
    drawn = [
        (release.release(labels, distances, sampler=SeededSampler(seed)) == truth).mean()
        for seed in range(300)
    ]
    assert curve(0.5, 1e-5 if mechanism != "stability" else 0.0, 1) == pytest.approx(
        np.mean(drawn), abs=5 * np.std(drawn) / np.sqrt(300)
    )


def test_a_vote_is_gaussian_noise_on_its_margin() -> None:
    random = np.random.default_rng(1)
    margins, truth = random.normal(size=500) * 8, random.integers(0, 2, 500)
    curve = vote_curve(margins, truth)
    sigma = 3.0 * rungs.analytic_sigma(sensitivity=1.0, epsilon=2.0, delta=1e-5)
    drawn = [((margins + random.normal(size=500) * sigma > 0) == truth).mean() for _ in range(2000)]
    assert curve(2.0, 1e-5, 9) == pytest.approx(np.mean(drawn), abs=0.003)
    # One answer is the response's, not the noise's.
    assert curve(2.0, 1e-5, 1) == pytest.approx(curve(2.0, 0.0, 1), abs=1e-4)
    sure = vote_curve(margins, (margins > 0).astype(int))
    assert sure(2.0, 0.0, 1) > sure(2.0, 1e-5, 2) + 0.01


def test_settings_are_chosen_without_the_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were they scored on the queries, other labels of these would choose other settings; so what
    is wrong of the flipped labels is what was right of the true ones.
    """
    split = rungs.SPLITS["blobs-close"][0](0)
    flipped = replace(split, truth=1 - split.truth)
    curves = [rungs.tuned_vote(one)[0] for one in (split, flipped)]
    for epsilon, answers in ((0.01, 1), (1.0, 10_000), (10.0, 200_000)):
        right, wrong = (curve(epsilon, 1e-5, answers) for curve in curves)
        assert right > 0.6
        assert wrong == pytest.approx(1 - right, abs=1e-9)
    monkeypatch.setattr(rungs, "TOTALS", (1.0,))
    trained, other = (rungs.trained_accuracies(one, 0)[1.0] for one in (split, flipped))
    assert other == pytest.approx([1 - share for share in trained])
    assert trained[0] > 0.85
