"""Names of a package that are imported on their first use."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def lazy_names(package: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for ``package``, after PEP 562.

    Importing one module of a package imports the package first. If the package only lists its
    names, a module loads no more than its own imports, and neither numpy nor torch is loaded for a
    help text. The names are those that the package's own file imports under ``if TYPE_CHECKING``,
    so that they stand once, where type checkers and readers find them.

    Args:
        package: its full name.

    A name whose module needs an optional package that is not installed raises ``MissingExtra``.

    Example:
        >>> find = lazy_names("reticent.release")
        >>> find("Payment").__name__
        'Payment'
        >>> find("pi")
        Traceback (most recent call last):
        AttributeError: module 'reticent.release' has no attribute 'pi'
    """

    def find(name: str) -> Any:
        module = _modules(package).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = imported(module, name)
        setattr(sys.modules[package], name, value)  # so that it is looked for once
        return value

    return find


def imported(module: str, name: str) -> Any:
    """Return an object of a module, which is imported.

    Raises:
        MissingExtra: the module needs an optional package that is not installed.
    """
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        from reticent.core.extras import missing_extra  # it needs names of this module

        missing = missing_extra(error)
        if missing is None:
            raise
        raise missing from error


@cache
def _modules(package: str) -> dict[str, str]:
    """Return the module of each name that a package imports for type checkers."""
    loader: Any = importlib.import_module(package).__loader__
    return {
        alias.asname or alias.name: line.module
        for block in ast.parse(loader.get_source(package)).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
        if isinstance(line, ast.ImportFrom) and line.module
        for alias in line.names
    }
