"""Names of a package that are imported on their first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for ``package``, after PEP 562.

    Importing one module of a package imports the package first. If the package only lists its
    names, a module loads no more than its own imports, and neither numpy nor torch is loaded for a
    help text.

    Args:
        package: its full name.
        modules: full names of modules, and for each the names that ``package`` offers from it.

    A name whose module needs an optional package that is not installed raises ``MissingExtra``.

    Example:
        >>> find = lazy_names("example", {"math": ("tau",)})
        >>> round(find("tau"), 3)
        6.283
        >>> find("pi")
        Traceback (most recent call last):
        AttributeError: module 'example' has no attribute 'pi'
    """
    where = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(where[name])
        except ModuleNotFoundError as error:
            from reticent.core.extras import missing_extra  # it needs names of this module

            missing = missing_extra(error)
            if missing is None:
                raise
            raise missing from error
        value = getattr(module, name)
        if package in sys.modules:
            setattr(sys.modules[package], name, value)  # so that it is looked for once
        return value

    return find
