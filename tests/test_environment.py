"""The installed packages are the locked ones, all of them, and locks hold hashes and no more."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "locks"


def locked(name: str) -> dict[str, str]:
    """Name to version of what a lock holds for this Python on this system."""
    found = {}
    for line in (LOCKS / name).read_text(encoding="utf-8").splitlines():
        if "==" in line and not line.startswith(" "):
            requirement = Requirement(line.removesuffix("\\"))
            if requirement.marker is None or requirement.marker.evaluate():
                [pin] = requirement.specifier
                found[canonicalize_name(requirement.name)] = pin.version
    return found


def _closure(roots: list[Requirement]) -> dict[str, str]:
    """Name to installed version of everything that ``roots`` need here, directly or not."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    queue = [(root, extra) for root in roots for extra in ("", *root.extras)]
    while queue:
        requirement, extra = queue.pop()
        name = canonicalize_name(requirement.name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        distribution = metadata.distribution(name)
        found[name] = distribution.version.split("+")[0]
        for line in distribution.requires or []:
            child = Requirement(line)
            if child.marker is None or child.marker.evaluate({"extra": extra}):
                queue += [(child, child_extra) for child_extra in ("", *child.extras)]
    return found


def test_closure_follows_extras_and_indirect_needs():
    closure = _closure([Requirement("reticent[dev]")])
    assert {"reticent", "torch", "sympy", "pytest", "pluggy", "psycopg-binary"} <= set(closure)
    assert "pytest" not in _closure([Requirement("reticent")])


pytestmark = pytest.mark.skipif(
    not re.search(r"venv$", sys.prefix), reason="for the environment that run.py makes"
)


def test_every_installed_package_has_its_locked_version() -> None:
    installed = _closure([Requirement("reticent[dev]")])
    installed.pop("reticent")
    pins = locked("everything.txt") | locked("torch.txt") | locked("cuda.txt")
    assert {name: pins.get(name) for name in installed} == installed


@pytest.mark.parametrize("lock", sorted(path.name for path in LOCKS.iterdir()))
def test_every_locked_version_has_hashes_and_no_address(lock: str) -> None:
    text = (LOCKS / lock).read_text(encoding="utf-8")
    assert "://" not in text
    for block in re.findall(r"^\S.*(?:\n    .*)*\n", text, re.MULTILINE):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]
