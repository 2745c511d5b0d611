"""Tests run as on another processor see its kernel, and are counted and named as they ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import kernels, main, probe


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
