"""Which tests run, and under which names: one name each, whoever collects it and when."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

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


@pytest.hookimpl(tryfirst=True)
def pytest_addoption(parser: pytest.Parser) -> None:
    """Soak tests take minutes to hours, and run only where somebody asks for them."""
    parser.addoption(
        "--soak", action="store_true", default=False, help="run the tests that are marked soak"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips soak tests unless they were asked for, and gives them two hours where they are."""
    asked = config.getoption("--soak")
    for item in items:
        if not item.get_closest_marker("soak"):
            continue
        if not asked:
            item.add_marker(pytest.mark.skip(reason="needs --soak"))
        elif not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(7200))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: what is made while tests are collected, as a gzip
    header that holds the time, would otherwise give a test another name in each worker, and no
    worker would run any.
    """
    return argname if isinstance(val, bytes) else None
