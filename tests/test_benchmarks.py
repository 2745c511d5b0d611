"""``python -m benchmarks`` knows every benchmark, and says what became of each."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"


def test_every_script_that_prints_figures_is_in_the_table() -> None:
    names = {one.name for one in runpy.run_path(str(FOLDER / "__main__.py"))["ALL"]}
    scripts = {
        path.stem
        for path in FOLDER.glob("[!_]*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    }
    assert names == scripts


@pytest.mark.parametrize(
    ("script", "result", "status"),
    [
        ("print('first'); print('42 per second')", "finished", 0),
        ("raise SystemExit('faiss is not installed')", "failed: faiss is not installed", 1),
        ("import time; time.sleep(60)", "stopped after 2 s", 1),
    ],
)
def test_the_table_says_what_became_of_a_benchmark(
    tmp_path: Path, script: str, result: str, status: int
) -> None:
    limit = "2" if "stopped" in result else "60"
    package = tmp_path / "benchmarks"
    package.mkdir()
    (package / "__main__.py").write_text((FOLDER / "__main__.py").read_text())
    (package / "__init__.py").touch()
    (package / "start.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "start", "--limit", limit],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert result in done.stdout
    if status == 0:
        assert "42 per second" in (tmp_path / "runs/benchmarks/start.txt").read_text()
    assert "==" in (tmp_path / "runs/benchmarks/versions.txt").read_text()


def test_a_name_of_no_benchmark_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "speed"], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"'speed' is no benchmark" in done.stderr
