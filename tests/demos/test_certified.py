"""The certified demonstration end to end; its problems, and its expected accuracies against drawn
labels.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from reticent.core import AddRemove
from reticent.core.errors import InvalidParameter, UnknownName
from reticent.demos.certified import (
    CERTIFIED,
    CONSTANT,
    CONVEX,
    DESCENT,
    GLOBAL,
    OURS,
    PROBLEMS,
    PUBLIC,
    PUBLISHED,
    PURE,
    VOTE,
    Answers,
    problem_of,
    run_demo,
    whitening,
)
from reticent.demos.page import Chart, Demonstration
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


def test_the_page_shows_the_figures_that_were_measured(blobs: Demonstration, read_page) -> None:
    results, html = blobs.results, blobs.page().replace("\u00a0", " ")
    assert sum(tag == "svg" for tag, _ in read_page(html)) == 3
    assert f"<b>{100 * results['accuracy_released']:.0f} %</b>" in html
    one, many, _ = (x for part in blobs.sections for x in part.shown if isinstance(x, Chart))
    for chart, found in ((one, results["accuracy"]), (many, results["many"])):
        drawn = {tuple((x, y) for x, y, _ in each.points) for each in (*chart.series, *chart.more)}
        assert drawn == {tuple(points.items()) for points in found.values()}
        assert {level.name for level in chart.levels} == {"noise-free", PUBLIC, CONSTANT}
        for points in found.values():
            assert "".join(f"<td>{100 * right:.1f}</td>" for right in points.values()) in html
    assert set(results["accuracy"]) == {*PURE, VOTE, DESCENT}
    assert {CERTIFIED, VOTE, DESCENT, CONVEX, "moments", "cells"} == set(results["many"])


@pytest.mark.slow
def test_it_does_not_import_torch() -> None:
    code = (
        "import sys\n"
        "from reticent.demos.certified import run_demo\n"
        "print(len(run_demo('digits').page()))\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10_000


@pytest.mark.browser
def test_it_opens_in_a_browser(blobs: Demonstration, open_page) -> None:
    assert open_page(blobs.page()) > 10_000


def test_ten_classes_have_no_published_line() -> None:
    results = run_demo("digits").results
    assert set(results["accuracy"]) == {OURS, VOTE, DESCENT}
    assert results["data"]["records"] == 1238  # 200 of them count as public
    assert results["accuracy_released"] > 0.5


def test_bad_requests() -> None:
    with pytest.raises(UnknownName):
        run_demo("moons")
    with pytest.raises(InvalidParameter):
        run_demo("blobs", epsilon=0.0)
    with pytest.raises(UnknownName):
        problem_of("moons")


def test_a_record_is_mapped_the_same_in_any_company() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 17))
    white = whitening(random.normal(size=(100, 17)), 5, floor=0.02)
    together = white(rows)
    for index in range(0, 60, 7):
        np.testing.assert_array_equal(white(rows[index : index + 1])[0], together[index])


def test_whitening_is_the_principal_components() -> None:
    public = np.random.default_rng(1).normal(size=(400, 4)) @ np.diag([4.0, 3.0, 2.0, 1.0]) + 5.0
    mapped = whitening(public, 3, floor=0.0)(public)
    np.testing.assert_allclose(np.cov(mapped.T, bias=True), np.eye(3), atol=1e-9)
    values, vectors = np.linalg.eigh(np.cov(public.T, bias=True))
    for index in range(3):
        oracle = (
            (public - public.mean(axis=0)) @ vectors[:, -1 - index] / np.sqrt(values[-1 - index])
        )
        np.testing.assert_allclose(np.abs(mapped[:, index]), np.abs(oracle), atol=1e-8)


@pytest.mark.parametrize("name", ["blobs", "blobs-close", "digits"])
def test_problems_without_files(name: str) -> None:
    assert name in PROBLEMS
    problem = problem_of(name)
    assert problem.X.shape[1] == problem.queries.shape[1]
    assert set(np.unique(problem.truth)) <= set(range(problem.classes))


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
