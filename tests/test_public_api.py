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


def test_what_most_programs_need_is_found_at_a_glance():
    assert len(reticent.__all__) <= 45


def test_estimators_are_the_same_objects_everywhere():
    from reticent.systems import PosthocClassifier, PosthocEncoder

    assert reticent.PosthocEncoder is PosthocEncoder
    assert reticent.PosthocClassifier is PosthocClassifier
    with pytest.raises(AttributeError, match="no attribute 'PosthocDecoder'"):
        _ = reticent.PosthocDecoder
