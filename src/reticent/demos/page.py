"""The results of a demonstration, with its page and its folder."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from reticent.core.files import OutputFolder
from reticent.core.guarantees import GuaranteeCard
from reticent.pages.line_chart import Series
from reticent.pages.page import Fact, Section, Table, page, paragraphs

MARKER = "results.json"
"""Mark of a folder that a demonstration wrote, and that another may replace."""


class System(Protocol):
    """A fitted system with a guarantee card, which can be stored."""

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words."""

    def save(self, path: Path, /) -> object:
        """Write the bundle."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Demonstration:
    """The results of a demonstration.

    Attributes:
        data: name of the data set.
        title: title of the page.
        lead: text that says who is protected from whom, and how.
        facts: the page's large numbers, with that of the release first.
        notes: text below the numbers on data, settings and limits.
        sections: sections of the page.
        system: fitted system. Its card stands on the page and its bundle in the folder.
        results: every figure, as plain values for JSON.
        summary: the outcome in one line.
        files: inputs to try the bundle on, by name.
    """

    data: str
    title: str
    lead: str
    facts: Sequence[Fact]
    notes: str
    sections: Sequence[Section]
    system: System
    results: dict[str, Any]
    summary: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    def page(self) -> str:
        """Return the page as HTML that needs no other file."""
        commands = ["reticent card bundle"] + [
            f"reticent release bundle --input {name} --output released.npz" for name in self.files
        ]
        return page(
            self.title,
            self.lead,
            self.facts,
            [
                paragraphs(self.notes),
                *self.sections,
                '<section aria-labelledby="card"><h2 id="card">The guarantee, in plain words</h2>',
                "<p>This card travels with the bundle; <code>reticent card</code> prints it.</p>",
                f'<div class="card">{self.system.card().to_html()}</div></section>',
                '<section aria-labelledby="try"><h2 id="try">Try it</h2>',
                "<p>This page's folder holds the fitted bundle. Run these commands there:</p>",
                f"<pre><code>{escape(chr(10).join(commands))}</code></pre></section>",
            ],
            name=self.data,
            about=self.title,
            window=f"{self.title}: {self.data}",
        )

    def write(self, folder: OutputFolder) -> None:
        """Write page, card, figures, bundle and further files.

        Raises:
            WriteFailed: no room, or the folder is not writable.
        """
        self.system.save(folder.path / "bundle")
        for name, content in self.files.items():
            folder.write(name, content)
        folder.write("card.md", self.system.card().to_markdown().encode())
        folder.write("index.html", self.page().encode())
        folder.write(MARKER, json.dumps(self.results, indent=2, allow_nan=False).encode())


def npy(array: npt.NDArray[Any]) -> bytes:
    """Return the content of an .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def line(name: str, points: Mapping[float, float], style: str = "", mark: str = "circle") -> Series:
    """Return the line through ``points``, y by x, without intervals."""
    return Series(name, tuple((x, y, 0.0) for x, y in points.items()), style, mark)


def comparison(heading: str, words: str, ways: Mapping[str, float], *, ours: str) -> Section:
    """Return the section that ranks methods for the same task.

    Args:
        heading, words: title and text of the section.
        ways: the share of right answers of each method.
        ours: the name that stands out.
    """
    ranked = sorted(ways.items(), key=lambda way: -way[1])
    rows = [(name, [f"{100 * share:.1f} %"]) for name, share in ranked]
    return Section(heading, words, [Table("way", ["right"], rows, strong=(ours,))])
