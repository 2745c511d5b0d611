"""Runs the code of the tutorials, and renews the figures that they draw and the numbers that they
print, both of one run.

    python docs/tutorials/run.py [PAGE ...]

Each page runs in an empty folder of its own: blocks of Python in one namespace, and blocks of
console commands (lines that begin with ``$ ``, of reticent or openssl; one that ends with ``&``
keeps running until the page ends, and ``> FILE`` writes what it prints to a file). What a block
prints has to be what the ``text`` block below it shows, but for numbers, which noise changes, and
for lines that a line ``...`` stands for. The CPU time of each page is printed.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

_PROGRAMS = {
    "reticent": [sys.executable, "-c", "from reticent.cli.main import main; main()"],
    "openssl": ["openssl"],
}
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_SECONDS = 120


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text and the line of the page that it begins on."""

    language: str
    text: str
    line: int


class Mismatch(AssertionError):
    """A block printed something else than the page shows."""


def pages() -> list[Path]:
    """The tutorials, in their order."""
    return sorted(FOLDER.glob("[0-9][0-9]-*.md"))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page that are run or compared."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(python|console|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(one[1], one[2], text[: one.start()].count("\n") + 1) for one in found]


def figures(page: Path) -> list[str]:
    """Names of the pictures that a page shows."""
    return re.findall(r"!\[[^\]]*\]\(([^)/]+\.svg)\)", page.read_text(encoding="utf-8"))


def run_page(page: Path, folder: Path, outputs: dict[int, str] | None = None) -> dict[str, Any]:
    """The names that the Python of a page leaves behind, having run all of it in ``folder``.

    Args:
        page: of Markdown.
        folder: empty.
        outputs: gets what every ``text`` block would show of this run, by the block's line.

    Raises:
        Mismatch: a block printed something else than the page shows.
    """
    names: dict[str, Any] = {"__name__": f"tutorial_{page.stem}"}
    printed = ""
    with contextlib.chdir(folder), contextlib.ExitStack() as background:
        for block in blocks(page):
            if block.language == "python":
                with contextlib.redirect_stdout(io.StringIO()) as caught:
                    code = compile("\n" * block.line + block.text, str(page), "exec")
                    exec(code, names)
                printed = caught.getvalue()
            elif block.language == "console":
                printed = "".join(_console(block.text, background))
            else:
                found = as_shown(block.text, printed)
                if found is None:
                    raise Mismatch(
                        f"{page.name}, line {block.line}: shown\n\n{block.text}\n"
                        f"printed\n\n{printed}"
                    )
                if outputs is not None:
                    outputs[block.line] = found
    return names


def as_shown(shown: str, printed: str) -> str | None:
    """``printed`` as a block shows it; None where it is not what is shown, whatever the numbers
    are. ``...`` alone on a line stands for any lines.
    """
    wanted, found = _lines(shown), _lines(printed)
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else f"({re.escape(_plain(line))}\n)" for line in wanted
    )
    plain = "".join(f"{_plain(line)}\n" for line in found)
    matched = re.fullmatch(pattern, plain)
    if matched is None:
        return None
    places = (plain.count("\n", 0, start) for start, _ in matched.regs[1:])
    lines = [line if line == "..." else found[next(places)].rstrip() for line in wanted]
    return "".join(f"{line}\n" for line in lines)


def renewed(page: Path, outputs: dict[int, str]) -> str:
    """The text of a page with other outputs in its ``text`` blocks."""
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    for block in reversed(blocks(page)):
        if block.line in outputs:
            begin = block.line
            lines[begin : begin + block.text.count("\n")] = [outputs[block.line]]
    return "".join(lines)


def _lines(text: str) -> list[str]:
    return text.strip("\n").splitlines()


def _plain(line: str) -> str:
    return " ".join(_NUMBER.sub("#", line).split())


def _console(text: str, background: contextlib.ExitStack) -> Iterator[str]:
    """What each command prints."""
    for line in text.splitlines():
        if not line.startswith("$ "):
            continue
        program, *words = shlex.split(line[2:])
        if program not in _PROGRAMS:
            raise Mismatch(f"{line}: expected a command of reticent or openssl")
        running, file = words[-1] == "&", None
        if running:
            words.pop()
        if ">" in words:
            *words, _, file = words
        command = [*_PROGRAMS[program], *words]
        environment = dict(os.environ, COLUMNS="100", NO_COLOR="1")
        if running:
            quiet = subprocess.DEVNULL
            process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)
            background.callback(process.wait, timeout=10)
            background.callback(process.terminate)
            continue
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode != 0:
            raise Mismatch(f"{line}: exit status {done.returncode}\n{done.stderr}")
        if file is not None:
            Path(file).write_text(done.stdout, encoding="utf-8")
        else:
            yield done.stdout


def main(names: list[str]) -> None:
    """Renews figures and outputs of the pages named, or of all."""
    wanted = [Path(name).resolve() for name in names] or pages()
    for page in wanted:
        with tempfile.TemporaryDirectory() as folder:
            outputs: dict[int, str] = {}
            before = sum(os.times()[:4])
            run_page(page, Path(folder), outputs)
            print(f"{page.stem}: {sum(os.times()[:4]) - before:.1f} CPU s")
            page.write_text(renewed(page, outputs), encoding="utf-8")
            for figure in figures(page):
                shutil.copyfile(Path(folder) / figure, FOLDER / figure)
                print(FOLDER / figure)


if __name__ == "__main__":
    main(sys.argv[1:])
