"""The one-command setup: idempotent, clear about what is missing, no import beyond the standard
library.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def run_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """run.py as a module, with its environment in an empty folder."""
    monkeypatch.setenv("RETICENT_VENV", str(tmp_path / "venv"))
    spec = importlib.util.spec_from_file_location("run_script", ROOT / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def commands(run_script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have run; making an environment writes only what later calls look
    for.
    """
    seen: list[list[str]] = []

    def call(command: list[str], **_: object) -> int:
        seen.append([str(word) for word in command])
        if command[1:3] == ["-m", "venv"]:
            folder = Path(command[-1])
            (folder / "bin").mkdir(parents=True, exist_ok=True)
            (folder / "bin" / "python").write_text("")
            (folder / "pyvenv.cfg").write_text("")
        return 0

    monkeypatch.setattr(run_script.subprocess, "call", call)
    monkeypatch.setattr(
        run_script, "pip_install", lambda environment, words: seen.append(["pip", *words])
    )
    return seen


def installed(commands: list[list[str]]) -> list[str]:
    """What pip was asked for, a file or a package each, in order."""
    return [Path(words[-1]).name for words in commands if words[0] == "pip" or "install" in words]


def test_sets_up_once_and_again_only_when_the_locks_change(
    run_script, commands, tmp_path, monkeypatch
):
    assert run_script.main(["setup"]) == 0
    assert installed(commands) == ["torch-cpu.txt", "everything.txt", ROOT.name]
    assert all(
        "--require-hashes" in words for words in commands if Path(words[-1]).suffix == ".txt"
    )
    commands.clear()
    assert run_script.main(["setup"]) == 0
    assert commands == []
    others = tmp_path / "locks"
    others.mkdir()
    (others / "everything.txt").write_text("numpy==0\n")
    monkeypatch.setattr(run_script, "LOCKS", str(others))
    assert run_script.main(["setup"]) == 0
    assert len(installed(commands)) == 3


@pytest.mark.parametrize(
    ("failing", "statuses", "expected", "runs"),
    [
        (0, [0], 0, 1),
        (1, [1, 0], 0, 2),
        (3, [1, 1], 1, 2),
        (4, [1], 1, 1),  # more than chance explains
        (2, [2], 2, 1),  # stopped, not failed
    ],
)
def test_a_few_failures_run_once_more_and_only_they(
    run_script, tmp_path, monkeypatch, capsys, failing, statuses, expected, runs
):
    monkeypatch.setattr(run_script, "ROOT", str(tmp_path))
    found = tmp_path / ".pytest_cache" / "v" / "cache" / "lastfailed"
    found.parent.mkdir(parents=True)
    found.write_text('{"tests/of/an/earlier/run": true}')
    seen = []

    def run(self, command, **_: object) -> int:
        if not seen:
            assert not found.exists()
            found.write_text(
                json.dumps({f"tests/test_a.py::test_{n}": True for n in range(failing)})
            )
        seen.append(command)
        return statuses[len(seen) - 1]

    monkeypatch.setattr(run_script.Environment, "run", run)
    made = run_script.Environment(str(tmp_path), "", None)
    assert run_script.run_tests(made, ["tests/core"]) == expected
    assert len(seen) == runs
    named = "Passed only in the second run" in capsys.readouterr().out
    assert named == (statuses == [1, 0])
    if runs == 2:
        assert "--last-failed" in seen[1]
        assert "-n0" in seen[1]
        assert seen[1][-1] == "tests/core"


def test_a_folder_that_is_no_environment_is_left_alone(run_script, tmp_path):
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "thesis.txt").write_text("mine")
    with pytest.raises(SystemExit, match="is no virtual environment"):
        run_script.main(["setup"])
    assert (tmp_path / "venv" / "thesis.txt").read_text() == "mine"


def test_imports_the_standard_library_alone():
    tree = ast.parse((ROOT / "run.py").read_text(), feature_version=(3, 6))
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert names <= set(sys.stdlib_module_names)
