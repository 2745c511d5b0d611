"""The common parts of pages: the document around them, tables, the guarantee card."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from reticent.core.guarantees import GuaranteeCard

ANSWERED = """Every number and picture on this page was computed by the run that wrote it.
Answers were released with noise from the operating system, so another run differs a little."""
"""The footer's sentence on the source of a page's answers, if they were released."""

_NUMBER_AND_PERCENT = re.compile(r"(?<=\d) %")  # a line must not end between the two


def document(*, title: str, about: str, body: Sequence[str], answered: str = ANSWERED) -> str:
    """Return a whole HTML page that needs nothing else: no script, no font, no request to anywhere.

    Args:
        title: title of the window.
        about: summary for search engines and previews.
        body: content before the footer, header included.
        answered: source of the page's answers, as HTML, for the footer.
    """
    style = files("reticent.pages").joinpath("style.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta name="description" content="{escape(about)}">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style>\n</head>\n<body>",
            *(_NUMBER_AND_PERCENT.sub("\u00a0%", part) for part in body),
            f"<footer><p>{answered} Nothing here loads from anywhere else.</p></footer>",
            "</body>\n</html>\n",
        ]
    )


def percent(share: float) -> str:
    """Return a share as a whole number of percent."""
    return f"{100 * share:.0f} %"


def explained(sentences: Sequence[str]) -> str:
    """Return plain texts as HTML, a paragraph for each."""
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def card_section(card: GuaranteeCard) -> str:
    """Return the guarantee card as a section."""
    return f"""<section aria-labelledby="card">
<h2 id="card">The guarantee, in plain words</h2>
<p>This card travels with the bundle; <code>reticent card</code> prints it.</p>
<div class="card">{card.to_html()}</div>
</section>"""


def figure_table(
    caption: str, first: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str], str]]
) -> str:
    """Return a table of numbers.

    Args:
        caption: text above it, or empty.
        first: head of the first column.
        columns: heads of the others.
        rows: name, cells as HTML, and CSS class of each row.
    """
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in (first, *columns))
    lines = [
        (
            f'<div class="scroll" role="region" aria-label="{escape(caption or first)}" '
            'tabindex="0"><table class="figures">'
        )
    ]
    lines.append(
        (f"<caption>{escape(caption)}</caption>" if caption else "")
        + f"<thead><tr>{head}</tr></thead><tbody>"
    )
    for name, cells, style in rows:
        lines.append(
            f'<tr class="{style}"><th scope="row">{escape(name)}</th>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
        )
    return "\n".join([*lines, "</tbody></table></div>"])
