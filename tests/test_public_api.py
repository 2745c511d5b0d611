"""The public names of every package, and the codes of errors."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import reticent

PUBLIC = {
    package: tuple(getattr(importlib.import_module(package), "__all__", ()))
    for package in (
        "reticent",
        *(
            f"reticent.{each.name}"
            for each in pkgutil.iter_modules(reticent.__path__)
            if each.ispkg
        ),
    )
}
"""Package to the names that it offers."""


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_exists_once(package):
    names = PUBLIC[package]
    assert len(set(names)) == len(names)
    module = importlib.import_module(package)
    assert [name for name in names if not hasattr(module, name)] == []
