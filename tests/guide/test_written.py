"""What is computed in the pages stands there as the code computes it now."""

from __future__ import annotations

import re
from pathlib import Path

from guide import written

ROOT = Path(__file__).parents[2]


def test_pages_tables_and_charts_are_those_that_the_code_makes() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in written.files().items()
        if path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run python -m guide.written"


def test_every_table_stands_in_a_page() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md"))
    marks = re.findall(r"<!-- table (.+?) -->", text)
    assert sorted(marks) == sorted(written.TABLES)
    assert text.count("<!-- end -->") == len(marks)
