"""The certified demonstration end to end, its page and its picture."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reticent.core.errors import InvalidParameter, UnknownName
from reticent.demos.certified.demo import CertifiedOutcome, run_certified_demo
from reticent.demos.certified.expected_accuracy import GLOBAL, OURS, PUBLISHED
from reticent.demos.certified.page import figure, page


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
    assert sum(tag == "svg" for tag, _ in read_page(page(blobs))) == 2
    html = page(blobs).replace("\u00a0", " ")
    assert blobs.classifier.card().protected.split(":")[0] in html
    assert f"{100 * blobs.results['accuracy_released']:.0f} %" in html
    assert figure(blobs).startswith(b"\x89PNG")


@pytest.mark.browser
def test_it_opens_in_a_browser(blobs: CertifiedOutcome, open_page) -> None:
    assert open_page(page(blobs)) > 10_000


def test_ten_classes_have_no_published_line() -> None:
    outcome = run_certified_demo("digits")
    assert list(outcome.accuracy.series) == [OURS]
    assert "nothing published to compare with" in page(outcome)
    assert outcome.results["accuracy_released"] > 0.5


def test_bad_requests() -> None:
    with pytest.raises(UnknownName, match="blobs, blobs-close, digits"):
        run_certified_demo("moons")
    with pytest.raises(InvalidParameter, match="epsilon"):
        run_certified_demo("blobs", epsilon=0.0)
