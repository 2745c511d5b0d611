"""The installed packages are the pinned ones, all of them, and none is a CUDA library."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PINS = {
    canonicalize_name(name): version
    for name, version in re.findall(
        r"^([A-Za-z0-9_.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
}
BUILD_TOOLS = ("hatchling", "editables")
CUDA = re.compile(r"nvidia|cuda|cudnn|triton|nccl")


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


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the pins are the resolution for Python 3.11"
)
def test_every_installed_package_has_its_pinned_version():
    installed = _closure([Requirement("reticent[dev]"), *map(Requirement, BUILD_TOOLS)])
    installed.pop("reticent")
    cuda_build = {name for name in installed if CUDA.search(name)}
    assert {name: PINS.get(name) for name in installed if name not in cuda_build} == {
        name: version for name, version in installed.items() if name not in cuda_build
    }


def test_pins_hold_nothing_that_is_not_needed():
    installed = _closure([Requirement("reticent[dev]"), *map(Requirement, BUILD_TOOLS)])
    assert sorted(set(PINS) - set(installed)) == []


def test_no_cuda_package_is_pinned_and_none_comes_with_a_cpu_build_of_torch():
    import torch

    assert [name for name in PINS if CUDA.search(name)] == []
    assert "torchvision" not in PINS
    if torch.version.cuda is None:
        assert [
            name for name in _closure([Requirement("reticent[dev]")]) if CUDA.search(name)
        ] == []


def test_the_traps_of_the_resolver_are_pinned_in_the_open():
    assert PINS["torch"] == "2.13.0"
    assert PINS["attrs"] == "23.2.0"
    assert PINS["dp-accounting"] == "0.6.0"
