"""Write those pages, tables and charts of docs/ that are computed: ``python -m guide.written``.

They are kept under version control, so that GitHub shows them too; a test computes them again. A
table stands in a page between ``<!-- table NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from guide import bibliography, charts, methods_table, odds

DOCS = Path(__file__).parents[1] / "docs"

TABLES: dict[str, Callable[[], str]] = {
    "answers": odds.answers_table,
    "gaussian": odds.gaussian_table,
    "group": odds.group_table,
    "others": odds.others_table,
    "shuffled": odds.shuffled_table,
    "success": odds.success_table,
    "Q*": methods_table.answers_table,
}
"""What stands between the marks of each name."""

_TABLE = re.compile(r"(<!-- table ([^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def files() -> dict[Path, str]:
    """What should stand in each file."""
    found = {
        DOCS / "bibliography.md": bibliography.page(),
        DOCS / "choose" / "odds.svg": charts.odds_chart(),
        DOCS / "choose" / "answers.svg": charts.crossing_chart(),
    }
    for path in (*sorted(DOCS.glob("choose/*.md")), DOCS / "shuffling.md"):
        found[path] = with_tables(path.read_text(encoding="utf-8"))
    return found


def with_tables(text: str) -> str:
    """A page with its tables computed anew.

    Raises:
        KeyError: a mark names no table.
    """
    return _TABLE.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[3]}", text)


def main() -> None:
    """Write all of them."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
