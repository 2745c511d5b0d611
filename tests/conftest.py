"""A test has one name, whoever collects it and when."""

from __future__ import annotations


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: what is made while tests are collected, as a gzip header that holds the
    time, would otherwise give a test another name in each worker, and no worker would run any.
    """
    return argname if isinstance(val, bytes) else None
