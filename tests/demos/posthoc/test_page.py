"""The page stands alone, can be read aloud, holds the computed figures, and opens in a real
browser.
"""

from __future__ import annotations

import re

import pytest

from reticent.demos.label_response import RESPONSE
from reticent.demos.posthoc.accuracy_lines import accuracy_series
from reticent.demos.posthoc.demo import OURS, at
from reticent.demos.posthoc.explanations import on_headline
from reticent.demos.posthoc.page import page


@pytest.fixture(scope="module")
def html(tiny_outcome) -> str:
    return page(tiny_outcome).replace("\u00a0", " ")


def test_it_stands_alone_and_can_be_read_aloud(html, read_page):
    assert sum(tag == "img" for tag, _ in read_page(html)) > 50


def test_its_figures_are_the_computed_ones(html, tiny_outcome):
    results = tiny_outcome.results
    row = at(results, OURS, results["headline"][OURS]["epsilon"])
    assert all(sentence in html for sentence in on_headline(results))
    assert f"<b>{100 * row['accuracy']:.0f} %</b>" in html
    assert f"{100 * row['accuracy']:.1f} ± {196 * row['standard_error']:.1f}" in html
    for attack in results["attacks"]:
        assert f"{attack['ssim']:.3f}" in html
    card = tiny_outcome.encoder.card()
    for sentence in (*card.assumptions, *card.not_protected):
        assert sentence.replace("'", "&#x27;") in html


def test_it_never_claims_more_than_is_proved(html):
    assert "this is not differential privacy of the whole picture" in " ".join(html.split())
    assert not re.search(
        r"picture is (differentially )?private|fully anonymous|100 % private", html
    )


def test_the_first_sentence_says_who_is_protected_from_whom(html):
    [lead] = re.findall(r'<p class="lead">(.*?)\.', html, flags=re.DOTALL)
    assert " ".join(lead.split()).startswith(
        "Every single picture is protected from the server that receives its embedding"
    )


def test_every_line_of_the_chart_is_a_row_of_the_table(html, tiny_outcome):
    names = {series.name for series in accuracy_series(tiny_outcome.results)}
    assert RESPONSE in names
    for name in names:
        assert f'<th scope="row">{name}</th>' in html


@pytest.mark.browser
def test_it_opens_in_a_browser(html, open_page):
    assert open_page(html) > 10_000
