"""Plants one fault at a time in a copy of the source, runs the quick tests of its room, and prints
which test noticed it.

    python -m tests.planted                    # all of them, on every core
    python -m tests.planted "sigma" --jobs 1   # those whose names hold a text

Tests that fail without any fault are left out and named. Exits with status 1 if more than one fault
survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from tests.planted.faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "benchmarks",
    "conftest.py",
    "src",
    "papers",
    "tests",
    "docs",
    "guide",
    "pyproject.toml",
    "README.md",
)
MOST_SURVIVORS = 1
LIMIT = 1800
"""Seconds after which a room counts as without an end, which is noticed too."""

_NONE_COLLECTED, _FAILED = 5, 1


@dataclass(frozen=True)
class Outcome:
    """What became of one fault.

    Attributes:
        fault: what was planted.
        noticed: the first test that failed, or "" if none did.
    """

    fault: Fault
    noticed: str


def planted(text: str, fault: Fault) -> str:
    """Return a file's text with the fault in it.

    Raises:
        ValueError: the old text does not occur exactly once.
    """
    if text.count(fault.old) != 1:
        raise ValueError(
            f"{fault.file}: {text.count(fault.old)} places for the fault {fault.name!r}; expected 1"
        )
    return text.replace(fault.old, fault.new)


@contextmanager
def copies(number: int) -> Iterator[Queue[Path]]:
    """Give a queue of copies of the source and its tests, which are removed in the end."""
    with tempfile.TemporaryDirectory(prefix="reticent-planted-") as folder:
        free: Queue[Path] = Queue()
        for place in range(number):
            copy = Path(folder, str(place))
            copy.mkdir()
            Path(folder).chmod(0o755)  # tests that give up their rights read it too
            for name in COPIED:
                source = ROOT / name
                if source.is_dir():
                    ignored = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(source, copy / name, ignore=ignored)
                else:
                    shutil.copy(source, copy / name)
            check_imported(copy)
            free.put(copy)
        yield free


def environment(copy: Path) -> dict[str, str]:
    """Return the variables with which a child imports the copy, and leaves no compiled files, which
    could outlive a change within the same second.
    """
    here = {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **here}


def check_imported(copy: Path) -> None:
    """Raise RuntimeError unless a child in ``copy`` imports the copy's source."""
    found = subprocess.run(
        [sys.executable, "-c", "import reticent; print(reticent.__file__)"],
        cwd=copy,
        env=environment(copy),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if not Path(found).resolve().is_relative_to(copy.resolve()):
        raise RuntimeError(f"the copy would not be tested: reticent comes from {found}")


def mirrored(copy: Path, fault: Fault) -> list[str]:
    """Return the test files named after the changed file, which are to run first."""
    name = f"test_{Path(fault.file).stem}*.py"
    return [
        str(path.relative_to(copy))
        for room in fault.rooms
        for path in sorted((copy / "tests" / room).glob(name))
    ]


def failures(
    copy: Path, paths: Sequence[str], *, first: bool, without: Iterable[str] = ()
) -> list[str]:
    """Return the quick tests in ``paths`` that fail, or the first of them.

    Args:
        copy: where they run.
        paths: files and folders, in their order.
        first: whether one failure is enough.
        without: names of tests that are left out.

    Raises:
        RuntimeError: the tests cannot be collected or run.
    """
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", "--no-header"]
    command += ["-p", "no:cacheprovider", "-m", "not slow", *(["-x"] if first else [])]
    command += [*paths, *(f"--deselect={name}" for name in without)]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment(copy),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return [f"no end within {LIMIT} s"]
    if done.returncode in (0, _NONE_COLLECTED):
        return []
    found = re.findall(r"^(?:FAILED|ERROR) (\S+::[^\n]*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode != _FAILED or not found:
        raise RuntimeError(f"{' '.join(paths)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found


def tried(fault: Fault, free: Queue[Path], failing: Iterable[str] = ()) -> Outcome:
    """Plant one fault in a free copy, run its room without the tests that are ``failing`` anyway,
    and mend the copy.
    """
    copy = free.get()
    changed = copy / "src" / "reticent" / fault.file
    whole = changed.read_text()
    try:
        changed.write_text(planted(whole, fault))
        own, found = mirrored(copy, fault), list[str]()
        if own:
            found = failures(copy, own, first=True, without=failing)
        if not found:
            rooms = [f"tests/{room}" for room in fault.rooms]
            found = failures(copy, rooms, first=True, without=failing)
        outcome = Outcome(fault, found[0].rsplit("/", 1)[-1] if found else "")
        print(f"{fault.name}: {outcome.noticed or 'NOT NOTICED'}", file=sys.stderr, flush=True)
        return outcome
    finally:
        changed.write_text(whole)
        free.put(copy)


def failing_anyway(room: str, free: Queue[Path]) -> list[str]:
    """Return the tests of a room that fail without any fault; they can notice none."""
    copy = free.get()
    try:
        return failures(copy, [f"tests/{room}"], first=False)
    finally:
        free.put(copy)


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the outcomes as a Markdown table."""
    lines = ["| fault | room | noticed by |", "|---|---|---|"]
    for one in outcomes:
        rooms = ", ".join(one.fault.rooms)
        # a parameter's value may be long, and holds signs that end a cell
        by = f"`{one.noticed.split('[')[0]}`" if one.noticed else "**no test**"
        lines.append(f"| {one.fault.name} | {rooms} | {by} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("names", nargs="*", help="texts in the names of faults; none for all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at the same time")
    given = parser.parse_args(arguments)
    chosen = [
        fault
        for fault in FAULTS
        if not given.names or any(name in fault.name for name in given.names)
    ]
    if not chosen:
        parser.error("no fault has such a name")
    rooms = list(dict.fromkeys(room for fault in chosen for room in fault.rooms))
    with copies(given.jobs) as free, ThreadPoolExecutor(given.jobs) as pool:
        failing = [
            name
            for found in pool.map(lambda room: failing_anyway(room, free), rooms)
            for name in found
        ]
        outcomes = list(pool.map(lambda fault: tried(fault, free, failing), chosen))
    survivors = [one for one in outcomes if not one.noticed]
    print(table(outcomes))
    print(f"\n{len(outcomes)} faults, {len(survivors)} not noticed")
    for test in failing:
        print(f"left out, since it fails without any fault: {test}", file=sys.stderr)
    return int(len(survivors) > MOST_SURVIVORS)


if __name__ == "__main__":
    sys.exit(main())
