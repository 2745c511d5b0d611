"""A page as plain data: large numbers, and sections of text, tables, charts and pictures."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from reticent.pages.line_chart import Level, Series, alone, line_chart

ANSWERED = """Every number and picture on this page was computed by the run that wrote it.
Answers were released with noise from the operating system, so another run differs a little."""
"""The footer's sentence on the source of a page's answers, if they were released."""

_PERCENT = "In percent."
_NUMBER_AND_PERCENT = re.compile(r"(?<=\d) %")  # a line must not end between the two

Pixels = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Fact:
    """One of the page's large numbers.

    Attributes:
        value: share in [0, 1], shown as a percentage, or text.
        words: text that says what the value is.
        style: "ours", "label", "best", "plain" or "published" for a colour, or empty.
    """

    value: float | str
    words: str
    style: str = ""

    def html(self) -> str:
        """Return the number as an item of a list."""
        value = self.value if isinstance(self.value, str) else f"{100 * self.value:.0f} %"
        return (
            f'<li class="{self.style}"><b>{escape(value)}</b><span>{escape(self.words)}</span></li>'
        )


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
        names = (self.first, *self.columns)
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in names)
        label = escape(self.caption or self.first)
        lines = [
            f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">',
            '<table class="figures">',
            f"<caption>{escape(self.caption)}</caption>" if self.caption else "",
            f"<thead><tr>{heads}</tr></thead><tbody>",
        ]
        for row, cells in self.rows:
            style = ' class="strong"' if row in self.strong else ""
            shown = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            lines.append(f'<tr{style}><th scope="row">{escape(row)}</th>{shown}</tr>')
        return "\n".join([*lines, "</tbody></table></div>"])


@dataclass(frozen=True)
class Chart:
    """Shares as lines over one axis, and where they have the same places, the figures as a table.

    Attributes:
        title: title of the chart.
        x_name: name of the logarithmic axis.
        series: lines, the most important one last.
        levels: values that the axis does not change.
        y_range: ends of the other axis, in [0, 1].
        y_name: name of the other axis.
        marks: places on the logarithmic axis by name, drawn as upright lines.

    Example:
        >>> ours = Series("ours", ((1.0, 0.72, 0.02), (4.0, 0.91, 0.01)), "ours")
        >>> Chart("Accuracy", "epsilon", [ours], [Level("no protection", 0.95)]).svg()[:4]
        '<svg'
    """

    title: str
    x_name: str
    series: Sequence[Series]
    levels: Sequence[Level] = ()
    y_range: tuple[float, float] = (0.0, 1.0)
    y_name: str = "share"
    marks: Mapping[str, float] = field(default_factory=dict)

    def svg(self) -> str:
        """Return the chart alone, as the content of an .svg file.

        Raises:
            InvalidInput: series or marks that cannot be drawn.
        """
        return alone(self._drawn("chart"))

    def html(self, name: str) -> str:
        """Return chart and table as HTML."""
        drawn = (
            f'<div class="scroll" role="region" aria-label="Chart: {escape(self.title)}" '
            f'tabindex="0">{self._drawn(name)}</div>'
        )
        if any(line.steps for line in self.series):
            return drawn
        table = Table(self.x_name, [f"{place:g}" for place in self._places], self._rows, _PERCENT)
        return f"{drawn}<details><summary>The same as a table</summary>{table.html(name)}</details>"

    @property
    def _places(self) -> list[float]:
        return sorted({x for line in self.series for x, _, _ in line.points})

    @property
    def _rows(self) -> list[tuple[str, list[str]]]:
        rows = []
        for line in reversed(self.series):
            known = {x: f"{100 * y:.1f}" for x, y, _ in line.points}
            rows.append((line.name, [known.get(x, "–") for x in self._places]))
        same = [(level.name, [f"{100 * level.y:.1f}"] * len(self._places)) for level in self.levels]
        return rows + same

    def _drawn(self, name: str) -> str:
        at = ", ".join(f"{place:g}" for place in self._places)
        said = "; ".join(f"{line}: {', '.join(cells)}" for line, cells in self._rows)
        steps = any(line.steps for line in self.series)
        marks = "".join(f" {told} at {place:.3g}." for told, place in self.marks.items())
        return line_chart(
            self.series,
            self.levels,
            title=self.title,
            description=f"{self.title}.{marks}" if steps else f"In percent at {at}. {said}.",
            x_name=self.x_name,
            y_name=self.y_name,
            y_range=self.y_range,
            marks=self.marks,
            name=name,
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
                f'src="{picture_address(1.0 - picture if self.inverted else picture)}"></td>'
                for picture, what in zip(pictures, self.names, strict=True)
            )
            lines.append(
                f'<tr><th scope="row">{escape(row)}<small>{escape(note)}</small></th>{cells}</tr>'
            )
        return "\n".join([*lines, "</tbody></table></div>"])


@dataclass(frozen=True)
class Items:
    """A list.

    Attributes:
        items: a name, which may be empty, and a text each.
        summary: words behind which the list is folded away, or empty.
    """

    items: Sequence[tuple[str, str]]
    summary: str = ""

    def html(self, name: str) -> str:
        """Return the list as HTML."""
        lines = "".join(
            f"<li>{f'<b>{escape(head)}</b>: ' if head else ''}{escape(text)}</li>"
            for head, text in self.items
        )
        listed = f"<ul>{lines}</ul>"
        if not self.summary:
            return listed
        return f"<details><summary>{escape(self.summary)}</summary>{listed}</details>"


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        heading: title of the section.
        words: plain text. An empty line begins a paragraph, as in all words of a page.
        shown: tables, charts, pictures and lists below the text, or HTML.
    """

    heading: str
    words: str
    shown: Sequence[Table | Chart | Pictures | Items | str] = ()

    def html(self, name: str) -> str:
        """Return the section as HTML, with ``name`` as the id of its heading."""
        shown = [
            one if isinstance(one, str) else one.html(f"{name}-{at}")
            for at, one in enumerate(self.shown)
        ]
        return "\n".join(
            [
                f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(self.heading)}</h2>',
                paragraphs(self.words),
                *shown,
                "</section>",
            ]
        )


def page(
    title: str,
    lead: str,
    facts: Sequence[Fact],
    content: Sequence[str | Section],
    *,
    name: str,
    about: str,
    window: str,
    answered: str = ANSWERED,
) -> str:
    """Return a whole HTML page that needs nothing else: no script, no font, no request to anywhere.

    Args:
        title, lead, facts: title, text and large numbers at the top.
        content: sections, and HTML of other parts.
        name: words above the title.
        about: summary for search engines and previews.
        window: title of the window.
        answered: source of the page's answers, as HTML, for the footer.
    """
    style = files("reticent.pages").joinpath("style.css").read_text(encoding="utf-8")
    listed = "".join(fact.html() for fact in facts)
    body = [
        f'<header><p class="name-of">reticent · {escape(name)}</p>',
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">{escape(" ".join(lead.split()))}</p></header>',
        "<main>",
        f'<ul class="facts" aria-label="Main results">{listed}</ul>' if facts else "",
        *(
            part.html(f"part-{at}") if isinstance(part, Section) else part
            for at, part in enumerate(content)
        ),
        "</main>",
        f"<footer><p>{answered} Nothing here loads from anywhere else.</p></footer>",
    ]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta name="description" content="{escape(about)}">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(window)}</title>",
            f"<style>\n{style}</style>\n</head>\n<body>",
            *(_NUMBER_AND_PERCENT.sub("\u00a0%", part) for part in body),
            "</body>\n</html>\n",
        ]
    )


def paragraphs(text: str) -> str:
    """Return plain text as HTML. An empty line begins a paragraph."""
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return "".join(f"<p>{escape(part)}</p>" for part in parts if part)


def picture_address(picture: Pixels) -> str:
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
