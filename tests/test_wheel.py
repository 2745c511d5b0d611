"""The wheel, in an environment with nothing but what it says it needs: no torch, no clone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from tests.source import ROOT, built_wheel, needed

pytestmark = pytest.mark.slow


def link(distribution: metadata.Distribution, site: Path) -> None:
    """Makes an installed distribution importable from ``site``."""
    tops = {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}
    for top in tops - {"__pycache__"}:
        (site / top).symlink_to(Path(str(distribution.locate_file(top))))


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel, and an empty folder to run it in."""

    wheel: Path
    commands: Path
    folder: Path

    def run(self, command: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs one of its commands in the empty folder."""
        outside = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        } | {"XDG_STATE_HOME": str(self.folder / "state")}
        return subprocess.run(
            [self.commands / command, *words],
            cwd=self.folder,
            env=outside,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    base = tmp_path_factory.mktemp("wheel")
    wheel = built_wheel(base / "dist")
    venv.create(base / "environment", with_pip=False, symlinks=True)
    commands = base / "environment" / "bin"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            commands / "python",
            "install",
            "--no-deps",
            "--no-index",
            "--disable-pip-version-check",
            "--quiet",
            wheel,
        ],
        check=True,
        capture_output=True,
    )
    (site,) = (base / "environment" / "lib").glob("python3*/site-packages")
    (about,) = site.glob("reticent-*.dist-info")
    installed = metadata.PathDistribution(about)
    for distribution in needed(*(installed.requires or [])).values():
        link(distribution, site)
    (base / "folder").mkdir()
    return Environment(wheel, commands, base / "folder")


def test_the_wheel_holds_the_package_and_nothing_beside_it(environment: Environment) -> None:
    with zipfile.ZipFile(environment.wheel) as archive:
        names = archive.namelist()
    assert [name for name in names if "papers" in name or "tests" in name] == []
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"reticent"}
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "reticent").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources <= set(names)


def test_the_environment_is_empty_otherwise(environment: Environment) -> None:
    found = environment.run(
        "python", "-c", "import reticent, sys; print(reticent.__file__); import torch"
    )
    assert found.stdout.startswith(str(environment.commands.parent))
    assert "No module named 'torch'" in found.stderr
    for package in ("papers", "matplotlib", "dp_accounting", "pytest"):
        assert environment.run("python", "-c", f"import {package}").returncode == 1


def test_a_demonstration_a_card_and_a_release(environment: Environment) -> None:
    demo = environment.run("reticent", "demo", "certified", "--output", "demo")
    assert demo.returncode == 0, demo.stderr
    names = ["bundle", "card.md", "index.html", "queries.npy", "results.json"]
    assert sorted(path.name for path in (environment.folder / "demo").iterdir()) == names
    card = environment.run("reticent", "card", "demo/bundle")
    assert card.stdout.rstrip() == (environment.folder / "demo" / "card.md").read_text().rstrip()
    words = ("--input", "demo/queries.npy", "--output", "answers.npz")
    release = environment.run("reticent", "release", "demo/bundle", *words)
    assert release.returncode == 0, release.stderr
    assert (environment.folder / "answers.npz").exists()


def test_what_it_cannot_do_it_says_in_one_line(environment: Environment) -> None:
    demo = environment.run("reticent", "demo", "posthoc", "--output", "pictures")
    assert (demo.returncode, demo.stdout) == (15, "")
    # What is named can be installed by somebody who has this wheel alone.
    assert re.fullmatch(r"error: torch [^\n]*pip install \"torch>=[0-9.]+\"[^\n]*\n", demo.stderr)
