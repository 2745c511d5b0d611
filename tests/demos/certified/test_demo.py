"""The certified demonstration end to end, its page and its picture."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from reticent.core.errors import InvalidParameter, UnknownName
from reticent.demos.certified.demo import CertifiedOutcome, run_certified_demo
from reticent.demos.certified.expected_accuracy import GLOBAL, OURS, PUBLISHED
from reticent.demos.certified.page import figure, page
from reticent.demos.certified.rungs import (
    CELLS,
    CONSTANT,
    CONVEX,
    DESCENT,
    MOMENTS,
    PUBLIC,
    RADIUS,
    VOTE,
)


@pytest.fixture(scope="module")
def blobs() -> CertifiedOutcome:
    return run_certified_demo("blobs-close")


def test_what_is_released_is_what_was_promised(blobs: CertifiedOutcome) -> None:
    results = blobs.results
    expected = results["accuracy_at_epsilon"]
    # 2,000 independent labels: beyond 5 standard errors a false alarm is below 1e-6.
    spread = 5 * np.sqrt(0.25 / results["data"]["queries"])
    assert abs(results["accuracy_released"] - expected[OURS]) < spread
    assert expected[OURS] > results["accuracy_noise_free"] - 0.01
    assert max(expected[PUBLISHED], expected[GLOBAL]) < 0.6
    assert results["guarantee"]["epsilon"] == 0.03
    assert results["totals"][0]["epsilon"] <= 0.03
    assert "seeded" not in results["sampler"]
    json.dumps(results, allow_nan=False)


def test_fraction_is_that_of_the_classifier(blobs: CertifiedOutcome) -> None:
    _, distances = blobs.classifier.stable_distances(blobs.held_out)
    for k, share in blobs.results["fraction"]["series"]["ours: certified"]:
        assert share == (distances >= k).mean()


def test_page_and_picture(blobs: CertifiedOutcome, read_page) -> None:
    assert sum(tag == "svg" for tag, _ in read_page(page(blobs))) == 3
    html = page(blobs).replace("\u00a0", " ")
    assert blobs.classifier.card().protected.split(":")[0] in html
    assert f"{100 * blobs.results['accuracy_released']:.0f} %" in html
    assert figure(blobs).startswith(b"\x89PNG")


def test_every_rival_is_on_page_and_picture(blobs: CertifiedOutcome) -> None:
    html = page(blobs)
    for chart in (blobs.accuracy, blobs.many):
        assert {VOTE, DESCENT} <= set(chart.series)
        assert {PUBLIC, CONSTANT} <= set(chart.levels)
        for value in [y for points in chart.series.values() for _, y in points]:
            assert f"<td>{100 * value:.1f}</td>" in html
    assert {VOTE, DESCENT, PUBLIC, CONSTANT} <= set(blobs.results["accuracy_at_epsilon"])
    table = html.partition('id="many-answers"')[2].partition("</section>")[0]
    assert set(blobs.results["many_others"]) == {MOMENTS, CELLS, RADIUS, CONVEX}
    for name, points in blobs.results["many_others"].items():
        cells = "".join(f"<td>{100 * right:.1f}</td>" for _, right in points)
        assert f'<th scope="row">{name}</th>{cells}' in table
    # 3,000 overlapping points in two columns are easy for all of them
    at = blobs.results["accuracy_at_epsilon"]
    assert min(at[OURS], at[VOTE], at[PUBLIC]) > 0.88 > 0.55 > at[CONSTANT]


def test_the_first_sentence_says_who_is_protected_from_whom(blobs: CertifiedOutcome) -> None:
    first = re.search(r'<p class="lead">(.*?)\.', page(blobs), flags=re.DOTALL)
    assert first is not None
    words = " ".join(first.group(1).split())
    assert words.startswith("Every single training record is protected from whoever receives")


@pytest.mark.slow
def test_it_does_not_import_torch() -> None:
    code = (
        "import sys\n"
        "from reticent.demos.certified.demo import run_certified_demo\n"
        "from reticent.demos.certified.page import page\n"
        "print(len(page(run_certified_demo('digits'))))\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10_000


@pytest.mark.browser
def test_it_opens_in_a_browser(blobs: CertifiedOutcome, open_page) -> None:
    assert open_page(page(blobs)) > 10_000


def test_ten_classes_have_no_published_line() -> None:
    outcome = run_certified_demo("digits")
    assert list(outcome.accuracy.series) == [OURS, VOTE, DESCENT]
    assert outcome.results["data"]["records"] == 1238  # 200 of them count as public
    assert "nothing published to compare with" in page(outcome)
    assert outcome.results["accuracy_released"] > 0.5


def test_bad_requests() -> None:
    with pytest.raises(UnknownName, match="blobs, blobs-close, digits"):
        run_certified_demo("moons")
    with pytest.raises(InvalidParameter, match="epsilon"):
        run_certified_demo("blobs", epsilon=0.0)
