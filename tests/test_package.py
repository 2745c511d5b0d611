"""What surrounds the code: the metadata, the citation, and how the command is started."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import reticent

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert PROJECT["version"] == reticent.__version__
    assert re.findall(r"^version: (\S+)$", citation, re.MULTILINE) == [reticent.__version__]


def test_the_package_says_that_it_is_typed() -> None:
    assert files("reticent").joinpath("py.typed").is_file()


def reticent_command(*words: str) -> subprocess.CompletedProcess[str]:
    """``python -m reticent`` with these words, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "reticent", *words],
        check=False,
        capture_output=True,
        text=True,
    )


def test_python_dash_m_is_the_command() -> None:
    shown = reticent_command("--version")
    assert (shown.returncode, shown.stdout) == (0, f"reticent {reticent.__version__}\n")
    wrong = reticent_command("card", "no-such-folder")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: ")
