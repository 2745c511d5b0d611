"""The one-command setup: idempotent, clear about what is missing, no import beyond the standard
library.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
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
    """The commands that would have run; making the environment writes only what later calls look
    for.
    """
    seen: list[list[str]] = []

    def call(command: list[str], **_: object) -> int:
        seen.append([str(word) for word in command])
        if command[1:3] == ["-m", "venv"]:
            folder = Path(run_script.BIN)
            folder.mkdir(parents=True)
            Path(run_script.PYTHON).write_text("")
            (folder.parent / "pyvenv.cfg").write_text("")
        return 0

    monkeypatch.setattr(run_script.subprocess, "call", call)
    monkeypatch.setattr(run_script, "install", lambda arguments: seen.append(["pip", *arguments]))
    return seen


def test_sets_up_once_and_again_only_when_the_pins_change(
    run_script, commands, tmp_path, monkeypatch
):
    assert run_script.main(["setup"]) == 0
    assert [words[0] for words in commands].count("pip") == 2
    commands.clear()
    assert run_script.main(["setup"]) == 0
    assert commands == []
    other = tmp_path / "constraints.txt"
    other.write_text("numpy==0\n")
    monkeypatch.setattr(run_script, "CONSTRAINTS", str(other))
    (tmp_path / "venv" / "bin" / "python").unlink()
    (tmp_path / "venv" / "bin").rmdir()
    assert run_script.main(["setup"]) == 0
    assert [words[0] for words in commands].count("pip") == 2


def test_a_setup_that_broke_off_is_repeated(run_script, commands, tmp_path, monkeypatch):
    def stop(arguments):
        raise SystemExit("pip could not install")

    with monkeypatch.context() as broken:
        broken.setattr(run_script, "install", stop)
        with pytest.raises(SystemExit):
            run_script.main(["test"])
    assert not Path(run_script.STAMP).exists()


def test_words_become_commands(run_script, commands):
    run_script.main(["setup"])
    commands.clear()
    run_script.main(["test", "tests/core"])
    run_script.main(["test", "-n0", "-x"])
    run_script.main(["demo", "posthoc", "--seed", "1"])
    assert commands[0][1:] == ["-m", "pytest", "-n", "logical", "tests/core"]
    assert commands[1][1:] == ["-m", "pytest", "-n0", "-x"]
    assert commands[2] == [str(Path(run_script.BIN) / "reticent"), "demo", "posthoc", "--seed", "1"]


def test_check_runs_everything_and_fails_if_one_check_fails(
    run_script, commands, monkeypatch, capsys
):
    run_script.main(["setup"])
    monkeypatch.setattr(run_script, "run", lambda command, **_: int(command[0].endswith("mypy")))
    assert run_script.main(["check"]) == 1
    assert "checks failed: types" in capsys.readouterr().out


def test_an_old_python_is_told_what_is_needed(run_script, monkeypatch):
    monkeypatch.setattr(run_script.sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer; this is 3\.9\.2"):
        run_script.main(["test"])


def test_a_python_without_venv_is_told_what_to_install(run_script, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SystemExit, match=r"apt install python3\.\d+-venv"):
        run_script.main(["test"])


def test_a_folder_that_is_no_environment_is_left_alone(run_script, tmp_path):
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "thesis.txt").write_text("mine")
    with pytest.raises(SystemExit, match="is no virtual environment"):
        run_script.main(["setup"])
    assert (tmp_path / "venv" / "thesis.txt").read_text() == "mine"


def test_a_failing_pip_leaves_its_last_words_and_a_hint(run_script, tmp_path, monkeypatch, capsys):
    (tmp_path / "venv").mkdir()
    monkeypatch.setattr(run_script, "PYTHON", sys.executable)
    with pytest.raises(SystemExit, match="pip could not install"):
        run_script.install(["--no-index", "no-such-package-for-reticent"])
    assert "no-such-package-for-reticent" in capsys.readouterr().err
    assert "no-such-package-for-reticent" in (tmp_path / "venv" / "reticent-setup.log").read_text()


def test_without_arguments_it_explains_itself():
    answer = subprocess.run(
        [sys.executable, str(ROOT / "run.py")], capture_output=True, text=True, check=True
    )
    assert "run.py demo posthoc" in answer.stdout
    assert "run.py test" in answer.stdout


def test_imports_the_standard_library_alone():
    tree = ast.parse((ROOT / "run.py").read_text(), feature_version=(3, 6))
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert names <= set(sys.stdlib_module_names)
