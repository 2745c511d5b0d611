"""A page stands alone and holds every figure of its demonstration; a folder holds what the page
promises.
"""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

from reticent.core import Guarantee
from reticent.core.files import output_folder
from reticent.core.guarantees import AddRemove, GuaranteeCard
from reticent.demos.page import (
    MARKER,
    Chart,
    Demonstration,
    Fact,
    Pictures,
    Section,
    Table,
    line,
    npy,
)
from reticent.pages.line_chart import Level, Series

PIXELS = np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 3, 4)


class Fitted:
    """A system whose bundle is one file."""

    def card(self) -> GuaranteeCard:
        return GuaranteeCard(
            title="A system",
            protected="every record & whoever it is of",
            from_whom="everybody",
            guarantee=Guarantee(1.0, 0.0, AddRemove(1)),
            assumptions=("the code is right",),
            not_protected=("a fact about <many>",),
            details=(("seed", "0"),),
        )

    def save(self, path: Path, /) -> None:
        path.mkdir()
        (path / "weights").write_text("1")


def demonstration() -> Demonstration:
    measured = Series("ours", ((1.0, 0.513, 0.021), (4.0, 0.9, 0.01)), "ours")
    chart = Chart(
        "Accuracy",
        "epsilon",
        [line("a <rival>", {1.0: 0.25, 4.0: 0.333}, "best", "square"), measured],
        [Level("no protection", 0.952)],
    )
    return Demonstration(
        data="made & up",
        title="A title",
        lead="Who is protected\n  from whom.",
        facts=[Fact(0.87, "right <always>", "ours")],
        notes="One paragraph.\n\n  Another\n  one.",
        sections=[
            Section("Charts", "Words.", [chart, replace(chart, title="Another")]),
            Section("Tables", "", [Table("name", ["x & y"], [("row", ["<1"])], strong=("row",))]),
            Section("Pictures", "", [Pictures("Two.", ["a", "b"], [("shown", "note", PIXELS)])]),
        ],
        system=Fitted(),
        results={"share": 0.87},
        summary="87 % right",
        files={"rows.npy": npy(PIXELS)},
    )


@pytest.fixture(scope="module")
def html() -> str:
    return demonstration().page().replace("\u00a0", " ")


def test_it_stands_alone_and_can_be_read_aloud(html, read_page):
    elements = read_page(html)
    assert sum(tag == "svg" for tag, _ in elements) == 2
    assert sum(tag == "img" for tag, _ in elements) == 2


def test_every_figure_is_on_it(html):
    assert "<b>87 %</b><span>right &lt;always&gt;</span>" in html
    for row, cells in {
        "ours": ["51.3", "90.0"],
        "a <rival>": ["25.0", "33.3"],
        "no protection": ["95.2", "95.2"],
    }.items():
        shown = "".join(f"<td>{cell}</td>" for cell in cells)
        assert f'<th scope="row">{escape(row)}</th>{shown}' in html
    assert '<tr class="strong"><th scope="row">row</th><td>&lt;1</td>' in html
    assert "<p>One paragraph.</p><p>Another one.</p>" in html
    card = Fitted().card()
    for sentence in (card.protected, *card.assumptions, *card.not_protected):
        assert escape(sentence) in html


def test_the_folder_holds_all_of_it(tmp_path):
    with output_folder(tmp_path / "out", marker=MARKER, overwrite=True) as folder:
        demonstration().write(folder)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"bundle", "card.md", "index.html", MARKER, "rows.npy"}
    assert json.loads((tmp_path / "out" / MARKER).read_text()) == {"share": 0.87}
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "rows.npy"), PIXELS)


@pytest.mark.browser
def test_it_opens_in_a_browser(open_page):
    assert open_page(demonstration().page()) > 10_000
