"""Words and weights of the site's entries: ``python -m guide.weights``, after ``guide.build``.

Words are those of the pages by hand, without blocks of code. A page's weight is that of its HTML
and of the pictures that it shows, without what all pages share.
"""

from __future__ import annotations

import re
import sys

from guide.build import DOCS, ROOT
from guide.contents import CONTENTS, below

SITE = ROOT / "build" / "site"


def pages_of(entry: str) -> list[str]:
    """The page and all pages below it that are written by hand."""
    found = [entry] if (DOCS / f"{entry}.md").exists() else []
    for page in below(entry, DOCS):
        found += pages_of(page)
    return found


def words(page: str) -> int:
    """Words outside blocks of code."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split())


def weight(page: str) -> int:
    """Bytes of the built page and of the pictures on it."""
    built = SITE / f"{page}.html"
    html = built.read_text(encoding="utf-8")
    shown = {built.parent / name for name in re.findall(r'<img[^>]*\ssrc="([^"#?]+)"', html)}
    found = [built, *(path for path in shown if path.exists())]
    return sum(path.stat().st_size for path in found)


def main() -> int:
    """Print a line for each entry."""
    print(f"{'entry':16}{'pages':>6}{'words':>8}{'median kB':>11}{'largest kB':>12}  largest page")
    for entry in CONTENTS["index"]:
        pages = pages_of(entry)
        weights = sorted((weight(page), page) for page in pages)
        middle, (largest, name) = weights[len(weights) // 2][0], weights[-1]
        total = sum(map(words, pages))
        print(f"{entry:16}{len(pages):6}{total:8}{middle / 1e3:11.0f}{largest / 1e3:12.0f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
