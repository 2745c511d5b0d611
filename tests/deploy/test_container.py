"""The steps of the container's recipe, in an empty folder, and what the folder takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.source import ROOT, built_wheel, needed

DEPLOY = ROOT / "deploy"
BASE = 125e6
"""Bytes of Debian's slim image of Python, by its publisher."""
LARGEST = 400e6

UNWANTED = {"tests", "__pycache__"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("dist"))


def installed(folder: Path, wheel: Path, *options: str, path: str = "") -> int:
    """Bytes in the folder that the steps of the recipe's first stage have filled.

    Args:
        folder: stands for the image's root, and is empty.
        wheel: what was built.
        options: further arguments of the step that installs.
        path: PYTHONPATH.
    """
    stage = (DEPLOY / "Containerfile").read_text().split("\nFROM ")[1]
    for source, target in re.findall(r"^COPY (\S+) (\S+)$", stage, re.MULTILINE):
        there = folder / target.lstrip("/")
        there.mkdir(parents=True, exist_ok=True)
        shutil.copy2(wheel if source == "dist/" else ROOT / source, there)
    (step,) = re.findall(r"^RUN (.*)$", stage, re.MULTILINE)
    step = re.sub(r"(?<= )/", f"{folder}/", step)
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    outside["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{outside['PATH']}"
    outside |= {"PYTHONDONTWRITEBYTECODE": "1"} | ({"PYTHONPATH": path} if path else {})
    done = subprocess.run(
        ["sh", "-ec", f"{step} {' '.join(options)}"],
        env=outside,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("reticent ")
    made = folder / "opt" / "reticent"
    files = [path for path in made.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if UNWANTED & {*path.relative_to(made).parts}]
    return sum(path.stat().st_size for path in files)


@pytest.mark.slow
def test_the_steps_fill_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    """With the packages that are installed here in the place of those of an index."""
    site = str(Path(np.__file__).parents[1])
    (tmp_path / "root").mkdir()
    total = own = installed(tmp_path / "root", wheel, "--no-deps", "--no-index", path=site)
    found = needed("reticent[service,postgres]")
    del found["reticent"]
    for distribution in found.values():
        for file in distribution.files or []:
            path = Path(str(distribution.locate_file(file)))
            if not UNWANTED & {*file.parts} and path.is_file():
                total += path.stat().st_size
    print(f"{own / 1e6:.0f} MB of our own, {total / 1e6:.0f} MB in all")
    assert total + BASE < LARGEST
