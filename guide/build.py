"""Build the site: ``python -m guide.build``, or ``python3 run.py docs`` from a fresh clone.

The pages of docs/ and the generated reference are laid out in one folder, which Sphinx then turns
into HTML. A warning fails the build. What comes out is opened from disk: nothing in it asks a
network for anything.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from sphinx.cmd.build import main as sphinx

from guide import api, commands, errors, settings
from guide.contents import with_contents

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def main(arguments: list[str] | None = None) -> int:
    """Exit status of the build."""
    parser = argparse.ArgumentParser(prog="python -m guide.build", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    out: Path = parser.parse_args(arguments).out
    started = time.monotonic()
    status = build(out)
    if status == 0:
        print(f"{out / 'index.html'} ({time.monotonic() - started:.0f} s)")
    return status


def build(out: Path) -> int:
    """Exit status of Sphinx, with the site in ``out``."""
    pages = out.with_name(f"{out.name}-pages")
    read = out.with_name(f"{out.name}-read")
    stage(pages)
    options = ["--fail-on-warning", "--quiet", "-d", str(read), "-c", str(ROOT / "guide")]
    return sphinx([*options, str(pages), str(out)])


def stage(pages: Path) -> None:
    """Lay out all pages below ``pages``; what is as it should be keeps its time."""
    wanted = {**copied(), **generated()}
    for path in pages.glob("**/*"):
        if path.is_file() and path.relative_to(pages).as_posix() not in wanted:
            path.unlink()
    for name, content in wanted.items():
        place = pages / name
        if not place.exists() or place.read_bytes() != content:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


def copied() -> dict[str, bytes]:
    """Every file of docs/, pages with their table of contents."""
    found = {}
    for path in sorted(DOCS.glob("**/*")):
        name = path.relative_to(DOCS).as_posix()
        if path.suffix == ".md":
            text = with_contents(name.removesuffix(".md"), path.read_text(encoding="utf-8"), DOCS)
            found[name] = in_site(text).encode()
        elif path.is_file():
            found[name] = path.read_bytes()
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found["changelog.md"] = in_site(re.sub(r"\]\(docs/", "](", changes)).encode()
    return found


def in_site(text: str) -> str:
    """A page as the site has it: its first heading is of the first level."""
    first = re.search(r"^(#+) ", text, flags=re.M)
    if first is None or first[1] == "#":
        return text
    return re.sub(rf"^#{{{len(first[1])}}}(#*) ", r"#\1 ", text, flags=re.M)


def generated() -> dict[str, bytes]:
    """Every page that is made from the code."""
    found = {
        "reference/commands.md": commands.page(),
        "reference/errors.md": errors.page(),
        "reference/settings.md": settings.page(),
        **api.pages(),
    }
    return {name: text.encode() for name, text in found.items()}


if __name__ == "__main__":
    sys.exit(main())
