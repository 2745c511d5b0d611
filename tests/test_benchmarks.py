"""``python -m benchmarks`` knows every benchmark, and says what became of each."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reticent.core.errors import MissingExtra

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
MAIN = runpy.run_path(str(FOLDER / "__main__.py"))
HEAVY = ("release", "certify", "layered", "runtimes")
"""Benchmarks that take long even where they are smallest, beside those that start processes."""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scripts can be imported by their names, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))  # scripts set what is not there
    yield
    for path in FOLDER.glob("[!_]*.py"):  # and not __main__, which is pytest
        sys.modules.pop(path.stem, None)


def _smallest() -> list[Any]:
    found = []
    for one in MAIN["ALL"]:
        marks = [pytest.mark.soak] if one.needs or one.name in HEAVY else [pytest.mark.slow]
        found.append(pytest.param(one, id=one.name, marks=marks))
    return found


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize("one", _smallest())
def test_every_benchmark_still_runs(
    one: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if one.needs == "data" and "RETICENT_DATA" not in os.environ:
        pytest.skip("needs RETICENT_DATA")
    kept = tmp_path / "figures"
    monkeypatch.setenv(MAIN["FILE"], str(kept))
    monkeypatch.setattr(sys, "argv", [f"{one.name}.py", *one.smallest])
    try:
        importlib.import_module(one.name).main()
    except MissingExtra as missing:
        pytest.skip(str(missing))
    except ModuleNotFoundError as missing:
        if missing.name and (FOLDER / f"{missing.name}.py").exists():
            raise
        pytest.skip(f"{missing.name} is not installed")
    assert re.search(r"\d", capsys.readouterr().out)
    names = (FOLDER / f"{one.name}.py").read_text(encoding="utf-8")
    figures = MAIN["read"](kept)
    assert bool(figures) == ("Figure" in names)
    for figure in figures:
        middle, low, high = figure.ours
        assert 0 < low <= middle <= high


@pytest.fixture
def figures(scripts: None) -> ModuleType:
    return importlib.import_module("figures")


def test_ratios_of_several_runs_show_their_spread_where_it_is_wide(figures: ModuleType) -> None:
    def run(ours: float) -> Any:
        return figures.Figure.of("fit", [ours], peer="NumPy", theirs=[12.0])

    assert figures.Figure.merged([run(10.0), run(12.0), run(11.0)]).cells()[-1] == "1.09"
    assert figures.Figure.merged([run(6.0), run(12.0), run(10.0)]).cells()[-1] == "1.2 (1 to 2)"
    alone = figures.Figure.merged([figures.Figure.of("fit", [s]) for s in (1.0, 3.0)])
    assert alone.cells() == ("fit", "2 (1 to 3) s", "", "", "")
