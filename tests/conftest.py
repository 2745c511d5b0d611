"""Which tests run, and under which names: one name each, whoever collects it and when."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import settings

from reticent.accounting import Cost, PrivacyEvent
from reticent.core import AddRemove, Adjacency, Guarantee, GuaranteeKind

# Machines that run several jobs miss per-example deadlines for reasons that are not the code's.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session", autouse=True)
def state_folder() -> Iterator[None]:
    """Anchors of the tests' ledgers stay out of the home of whoever runs them."""
    with tempfile.TemporaryDirectory(prefix="reticent-state-") as folder:
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = folder
        yield
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before


OPTIONAL = {
    "attr",
    "cryptography",
    "dp_accounting",
    "faiss",
    "highspy",
    "matplotlib",
    "mypy",
    "opacus",
    "opendp",
    "psycopg",
    "skimage",
    "sympy",
    "torch",
    "torchmetrics",
    "xgboost",
}
"""Packages that a test may need and an environment of --without-extras may lack."""

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
    """Turns a failure over a missing package into a skip, where --without-extras allows it."""
    if call is None or call.excinfo is None or not node.config.getoption("--without-extras"):
        return
    package = missing_package(call.excinfo.value)
    whole_file = isinstance(report, pytest.CollectReport)
    if package is None or (whole_file and node.nodeid.startswith(ALWAYS)):
        return
    report.outcome = "skipped"
    report.longrepr = (str(node.path), 0, f"Skipped: needs {package}")


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


@pytest.hookimpl(tryfirst=True)
def pytest_addoption(parser: pytest.Parser) -> None:
    """Soak tests take minutes to hours, and run only where somebody asks for them."""
    parser.addoption(
        "--soak", action="store_true", default=False, help="run the tests that are marked soak"
    )
    parser.addoption(
        "--without-extras",
        action="store_true",
        default=False,
        help="skip, with the reason, tests outside the core that need a package which is not here",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips soak tests unless they were asked for."""
    if not config.getoption("--soak"):
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.skip(reason="needs --soak"))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: what is made while tests are collected, as a gzip
    header that holds the time, would otherwise give a test another name in each worker, and no
    worker would run any.
    """
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def make_event() -> Callable[..., PrivacyEvent]:
    def make(
        epsilon: float = 0.1,
        delta: float = 0.0,
        adjacency: Adjacency | None = None,
        kind: GuaranteeKind = GuaranteeKind.DIFFERENTIAL_PRIVACY,
        event: Cost | None = None,
    ) -> PrivacyEvent:
        guarantee = Guarantee(epsilon, delta, adjacency or AddRemove(), kind)
        return PrivacyEvent("test", guarantee, event)

    return make
