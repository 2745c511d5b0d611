"""The content of a demonstration as plain data, and its page and folder."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from reticent.core.files import OutputFolder
from reticent.core.guarantees import GuaranteeCard
from reticent.pages.line_chart import Level, Series, line_chart
from reticent.pages.parts import card_section, document, explained, figure_table, percent

MARKER = "results.json"
"""Mark of a folder that a demonstration wrote, and that another may replace."""

Pixels = npt.NDArray[np.float32]


class System(Protocol):
    """A fitted system with a guarantee card, which can be stored."""

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words."""

    def save(self, path: Path, /) -> object:
        """Write the bundle."""


@dataclass(frozen=True)
class Fact:
    """One of the page's large numbers.

    Attributes:
        share: share in [0, 1], shown as a percentage.
        words: text that says what the share counts.
        style: "ours", "label", "best", "plain" or "published" for a colour, or empty.
    """

    share: float
    words: str
    style: str = ""


@dataclass(frozen=True)
class Table:
    """Figures by name.

    Attributes:
        first: head of the first column.
        columns: heads of the others.
        rows: a name and its cells.
        caption: text above the table, or empty.
        strong: names of the rows that stand out.
    """

    first: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    caption: str = ""
    strong: tuple[str, ...] = ()

    def html(self, name: str) -> str:
        """Return the table as HTML."""
        rows = [
            (row, [escape(cell) for cell in cells], "strong" if row in self.strong else "")
            for row, cells in self.rows
        ]
        return figure_table(self.caption, self.first, self.columns, rows)


@dataclass(frozen=True)
class Chart:
    """Shares as lines over the same places of one axis, and the same figures as a table.

    Attributes:
        title: title of the chart.
        x_name: name of the logarithmic axis.
        series: lines, the most important one last.
        levels: values that the axis does not change.
        y_range: ends of the other axis, in [0, 1].
    """

    title: str
    x_name: str
    series: Sequence[Series]
    levels: Sequence[Level] = ()
    y_range: tuple[float, float] = (0.0, 1.0)

    def html(self, name: str) -> str:
        """Return chart and table as HTML."""
        places = sorted({x for line in self.series for x, _, _ in line.points})
        rows = [
            (line.name, [f"{100 * y:.1f}" for _, y, _ in line.points])
            for line in reversed(self.series)
        ]
        rows += [(level.name, [f"{100 * level.y:.1f}"] * len(places)) for level in self.levels]
        heads = [f"{place:g}" for place in places]
        table = Table(self.x_name, heads, rows, "In percent.")
        said = "; ".join(f"{line}: {', '.join(cells)}" for line, cells in rows)
        drawn = line_chart(
            self.series,
            self.levels,
            title=self.title,
            description=f"In percent at {', '.join(heads)}. {said}.",
            x_name=self.x_name,
            y_name="share",
            y_range=self.y_range,
            name=name,
        )
        return (
            f'<div class="scroll" role="region" aria-label="Chart: {escape(self.title)}" '
            f'tabindex="0">{drawn}</div>'
            f"<details><summary>The same as a table</summary>{table.html(name)}</details>"
        )


@dataclass(frozen=True)
class Pictures:
    """Rows of small pictures.

    Attributes:
        caption: text above the pictures.
        names: names of the columns, written above them.
        rows: a name, a note below it and the pictures, shape (columns, height, width) in [0, 1].
        inverted: whether 0 is shown as white.
    """

    caption: str
    names: Sequence[str]
    rows: Sequence[tuple[str, str, Pixels]]
    inverted: bool = True

    def html(self, name: str) -> str:
        """Return the pictures as a table in HTML."""
        height, width = self.rows[0][2].shape[1:]
        shape = f' style="--shape:{width}/{height}"' if width != height else ""
        heads = "".join(f"<td>{escape(what)}</td>" for what in self.names)
        caption = escape(self.caption)
        lines = [
            f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">',
            f'<table class="pictures"><caption>{caption}</caption><tbody>',
            f'<tr aria-hidden="true"><td></td>{heads}</tr>',  # each picture says its own name
        ]
        for row, note, pictures in self.rows:
            cells = "".join(
                f'<td><img{shape} alt="{escape(f"{row}: {what}")}" '
                f'src="{_address(1.0 - picture if self.inverted else picture)}"></td>'
                for picture, what in zip(pictures, self.names, strict=True)
            )
            lines.append(
                f'<tr><th scope="row">{escape(row)}<small>{escape(note)}</small></th>{cells}</tr>'
            )
        return "\n".join([*lines, "</tbody></table></div>"])


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        heading: title of the section.
        words: plain text. An empty line begins a paragraph, as in all words of a page.
        shown: tables, charts and pictures below the text.
    """

    heading: str
    words: str
    shown: Sequence[Table | Chart | Pictures] = ()


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
        facts = "".join(
            f'<li class="{fact.style}"><b>{percent(fact.share)}</b>'
            f"<span>{escape(fact.words)}</span></li>"
            for fact in self.facts
        )
        commands = ["reticent card bundle"] + [
            f"reticent release bundle --input {name} --output released.npz" for name in self.files
        ]
        body = [
            f'<header><p class="name-of">reticent · {escape(self.data)}</p>',
            f"<h1>{escape(self.title)}</h1>",
            f'<p class="lead">{escape(" ".join(self.lead.split()))}</p></header>',
            f'<main><ul class="facts" aria-label="Main results">{facts}</ul>',
            _paragraphs(self.notes),
            *(_section(section, f"part-{at}") for at, section in enumerate(self.sections)),
            card_section(self.system.card()),
            '<section aria-labelledby="try"><h2 id="try">Try it</h2>',
            "<p>This page's folder holds the fitted bundle. Run these commands there:</p>",
            f"<pre><code>{escape(chr(10).join(commands))}</code></pre></section></main>",
        ]
        return document(title=f"{self.title}: {self.data}", about=self.title, body=body)

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


def _paragraphs(text: str) -> str:
    return explained([" ".join(part.split()) for part in text.split("\n\n") if part.strip()])


def _section(section: Section, name: str) -> str:
    shown = [one.html(f"{name}-{at}") for at, one in enumerate(section.shown)]
    return "\n".join(
        [
            f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(section.heading)}</h2>',
            _paragraphs(section.words),
            *shown,
            "</section>",
        ]
    )


def _address(picture: Pixels) -> str:
    """Return a grey picture as the data URL of a PNG file."""
    grey = np.round(255 * np.clip(picture, 0.0, 1.0)).astype(np.uint8)
    height, width = grey.shape
    header = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)  # 8 bits, grey, no interlacing
    lines = b"".join(b"\0" + row.tobytes() for row in grey)

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b""))
    content = b"\x89PNG\r\n\x1a\n" + b"".join(parts)
    return "data:image/png;base64," + base64.b64encode(content).decode()
