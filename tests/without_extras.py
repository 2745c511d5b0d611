"""A pytest plugin for environments without some extras: ``pytest -p tests.without_extras``.

Tests that need a package which is not installed are skipped, with the reason. Without the plugin
they fail. It is no conftest, since it has to be there when the conftests are imported.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from doctest import UnexpectedException
from importlib.util import find_spec
from typing import Any

import pytest

OPTIONAL = {
    "attr",
    "cryptography",
    "dask",
    "distributed",
    "docutils",
    "dp_accounting",
    "faiss",
    "fastapi",
    "h11",
    "highspy",
    "httpx",
    "jinja2",
    "matplotlib",
    "mypy",
    "myst_parser",
    "opacus",
    "opendp",
    "pandas",
    "polars",
    "prometheus_client",
    "psycopg",
    "pyarrow",
    "schemathesis",
    "skimage",
    "sphinx",
    "starlette",
    "sympy",
    "torch",
    "torchmetrics",
    "uvicorn",
    "xgboost",
}
"""Packages that a test may need and an environment without it has to be without."""

ALWAYS = (
    "tests/accounting/",
    "tests/core/",
    "tests/grids/",
    "tests/ledger/",
    "tests/mechanisms/",
    "tests/noise/",
    "tests/pages/",
)
"""Where a file of tests has to be importable without any extra; a test of it may still need one."""


def missing_package(error: BaseException | None) -> str | None:
    """The optional package that is not installed here and that ``error`` came from, if any."""
    # A failing example of a docstring wraps what it raised, and several are wrapped once more.
    error = next(iter(getattr(error, "failures", ())), error)
    if isinstance(error, UnexpectedException):
        error = error.exc_info[1]
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ModuleNotFoundError):
            package = (error.name or "").partition(".")[0]
            if package in OPTIONAL and find_spec(package) is None:
                return package
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__
    return None


def skipped_without(node: pytest.Item | pytest.Collector, call: Any, report: Any) -> None:
    """Turns a failure over a missing package into a skip, unless a whole file of the core fails."""
    if call is None or call.excinfo is None:
        return
    package = missing_package(call.excinfo.value)
    whole_file = isinstance(report, pytest.CollectReport)
    if package is None or (whole_file and node.nodeid.startswith(ALWAYS)):
        return
    report.outcome = "skipped"
    report.longrepr = (str(node.path), 0, f"Skipped: needs {package}")
    if whole_file:
        _forget(node)


def _forget(node: pytest.Item | pytest.Collector) -> None:
    """Takes a module that could not be executed out of ``sys.modules``, as ``import`` does.

    pytest's importlib mode leaves it there half made, and whoever imports it next would find no
    names in it, instead of hearing which package is missing.
    """
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == str(node.path):
            del sys.modules[name]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Files that cannot be imported for want of a package."""
    report = yield
    skipped_without(collector, getattr(report, "call", None), report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tests that find out while they run."""
    report = yield
    skipped_without(item, call, report)
    return report
