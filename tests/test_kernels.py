"""Tests run as on another processor see its kernel, and are counted and named as they ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import kernels, main, probe, run

TESTS = """
import os
import pytest

def test_that_passes():
    assert os.environ["OPENBLAS_CORETYPE"] == "Nowhere"

@pytest.mark.parametrize("which", [1, 2])
def test_that_fails(which):
    assert which == 1

@pytest.fixture
def broken():
    raise ValueError

def test_that_cannot_start(broken): ...

@pytest.mark.skip
def test_that_is_left_out(): ...
"""


def test_outcomes_are_counted_and_named(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    found = run({"OPENBLAS_CORETYPE": "Nowhere"}, [str(tmp_path)])
    assert found.passed == 2
    assert [name.rpartition("/")[2] for name in found.failures] == [
        "test_some.py::test_that_fails[2]",
        "test_some.py::test_that_cannot_start",
    ]
    assert found.status == 1
    assert run({}, [str(tmp_path / "absent.py")]).status not in (0, 1)


def test_the_processor_s_own_kernel_is_the_first_and_sets_nothing() -> None:
    first, *others = kernels().values()
    assert first == {}
    assert all(others)
    assert probe({}) == probe({"OPENBLAS_VERBOSE": "0"})


@pytest.mark.slow
def test_a_kernel_that_cannot_start_or_computes_alike_is_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "test_some.py").write_text("def test_that_passes(): ...", encoding="utf-8")
    made = {"own": {}, "same": {"OPENBLAS_VERBOSE": "0"}, "none": {"PYTHONHOME": str(tmp_path)}}
    monkeypatch.setattr("tests.kernels.kernels", lambda: made)
    assert main([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [*made]
    assert [line.count("passed") for line in lines] == [1, 0, 0]
    (tmp_path / "test_some.py").write_text("def test_that_fails(): assert False", encoding="utf-8")
    assert main([str(tmp_path)]) == 1
