"""What surrounds the code: the metadata, the citation, and how the command is started."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

import reticent

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert PROJECT["version"] == reticent.__version__
    assert re.findall(r"^version: (\S+)$", citation, re.MULTILINE) == [reticent.__version__]


def test_the_citation_has_what_its_format_requires() -> None:
    """The keys that version 1.2.0 of the Citation File Format requires, and no unknown one."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    keys = re.findall(r"^([\w-]+):", citation, re.MULTILINE)
    assert {"cff-version", "message", "title", "authors"} <= set(keys)
    assert set(keys) <= {
        "cff-version",
        "message",
        "type",
        "title",
        "abstract",
        "authors",
        "version",
        "license",
        "keywords",
        "date-released",
        "doi",
        "repository-code",
        "url",
    }
    assert len(keys) == len(set(keys))
    assert re.search(r"^cff-version: 1\.2\.0$", citation, re.MULTILINE)
    assert re.search(rf"^license: {re.escape(PROJECT['license'])}$", citation, re.MULTILINE)


def test_classifiers_are_known_and_name_the_tested_versions() -> None:
    known = pytest.importorskip("trove_classifiers").classifiers
    assert [name for name in PROJECT["classifiers"] if name not in known] == []
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert named == ["3.11", "3.12", "3.13"]
    assert f">={named[0]}" == PROJECT["requires-python"]


def test_the_package_says_that_it_is_typed() -> None:
    assert files("reticent").joinpath("py.typed").is_file()


def reticent_command(
    *words: str, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """``python -m reticent`` with these words, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "reticent", *words],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **(variables or {})},
    )


def test_python_dash_m_is_the_command() -> None:
    shown = reticent_command("--version")
    assert (shown.returncode, shown.stdout) == (0, f"reticent {reticent.__version__}\n")
    wrong = reticent_command("card", "no-such-folder")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: ")


def test_a_shell_completes_commands() -> None:
    asked = {
        "_RETICENT_COMPLETE": "complete_bash",
        "COMP_WORDS": "reticent le",
        "COMP_CWORD": "1",
    }
    assert reticent_command(variables=asked).stdout.split() == ["ledger"]
    assert "--install-completion" in reticent_command("--help").stdout
