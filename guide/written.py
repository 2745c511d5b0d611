"""Write those pages and tables of docs/ that are computed: ``python -m guide.written``.

They are kept under version control, so that GitHub shows them too; a test computes them again.
"""

from __future__ import annotations

from pathlib import Path

from guide import bibliography

DOCS = Path(__file__).parents[1] / "docs"


def files() -> dict[Path, str]:
    """What should stand in each file."""
    return {DOCS / "bibliography.md": bibliography.page()}


def main() -> None:
    """Write all of them."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
