"""Which tests run, and under which names: one name each, whoever collects it and when."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the tests marked soak too: hours, not minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out long runs whatever ``-m`` says; a hundredth of each runs always, as a test of its own."""
    if not config.getoption("--soak"):
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.skip(reason="needs --soak"))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: what is made while tests are collected, as a gzip header that holds the
    time, would otherwise give a test another name in each worker, and no worker would run any.
    """
    return argname if isinstance(val, bytes) else None
