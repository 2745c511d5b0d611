"""The installed packages are the locked ones, all of them, and locks hold hashes and no more."""

from __future__ import annotations

import re
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.source import ROOT, needed

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


pytestmark = pytest.mark.skipif(
    not re.search(r"venv$", sys.prefix), reason="for the environment that run.py makes"
)


def test_every_installed_package_has_its_locked_version() -> None:
    found = needed("reticent[dev]")
    assert {"torch", "sympy", "pytest", "pluggy", "psycopg-binary"} <= set(found)
    assert "pytest" not in needed("reticent")
    installed = {
        name: one.version.split("+")[0] for name, one in found.items() if name != "reticent"
    }
    pins = locked("everything.txt") | locked("torch.txt") | locked("cuda.txt")
    assert {name: pins.get(name) for name in installed} == installed


@pytest.mark.parametrize("lock", sorted(path.name for path in LOCKS.iterdir()))
def test_every_locked_version_has_hashes_and_no_address(lock: str) -> None:
    text = (LOCKS / lock).read_text(encoding="utf-8")
    assert "://" not in text
    for block in re.findall(r"^\S.*(?:\n    .*)*\n", text, re.MULTILINE):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]
