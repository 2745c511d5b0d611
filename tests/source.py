"""The source, parsed once in a process; wheels; and what a requirement leads to."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


@cache
def trees() -> dict[str, ast.Module]:
    """Every source file of the package and of the papers, by its path."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((*ROOT.glob("src/reticent/**/*.py"), *ROOT.glob("papers/**/*.py")))
    }


def built_wheel(folder: Path) -> Path:
    """The wheel of the source, as hatchling builds it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def needed(*requirements: str) -> dict[str, metadata.Distribution]:
    """The installed distributions that requirements lead to here, directly or not, by name."""
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    queue = _applying(requirements, "")
    while queue:
        wanted = queue.pop()
        name = canonicalize_name(wanted.name)
        for extra in ("", *wanted.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                found[name] = metadata.distribution(name)
                queue += _applying(found[name].requires or [], extra)
    return found


def _applying(requirements: Iterable[str], extra: str) -> list[Requirement]:
    every = map(Requirement, requirements)
    return [one for one in every if one.marker is None or one.marker.evaluate({"extra": extra})]
