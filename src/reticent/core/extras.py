"""Optional dependencies: the one place where they are imported, and where a missing one says
what to install.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, TypeGuard

from reticent.core.errors import MissingExtra

WHOLE_MODULES = {
    "torch": "networks",
    "fastapi": "service",
    "starlette": "service",
    "uvicorn": "service",
}
"""Packages that some modules are built on from their first line on, and the extra of each."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """What to say where a module could not be imported for want of an optional package; None
    where something else is missing.

    Example:
        >>> print(missing_extra(ModuleNotFoundError(name="torch")))
        torch is not installed: pip install "reticent[networks]"
        >>> missing_extra(ModuleNotFoundError(name="numpy")) is None
        True
    """
    package = (error.name or "").partition(".")[0]
    if package not in WHOLE_MODULES:
        return None
    return MissingExtra(_line(package, WHOLE_MODULES[package]))


def require(module: str, *, extra: str, instead: str = "") -> Any:
    """The module called ``module``, imported.

    Args:
        module: its full name, such as ``matplotlib.figure``.
        extra: the extra of this package that installs it.
        instead: what the caller could do without it, for the message.

    Raises:
        MissingExtra: its package is not installed.
        ImportError: it is installed and broken, or lacks the submodule.

    Example:
        >>> require("json", extra="none").loads("[1]")
        [1]
    """
    package = module.partition(".")[0]
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        without = f", or {instead}" if instead else ""
        raise MissingExtra(_line(package, extra) + without) from error
    return importlib.import_module(module)


def is_torch_module(value: object) -> TypeGuard[Any]:
    """Whether ``value`` is a torch module; torch is not imported to find out.

    Example:
        >>> is_torch_module("a name")
        False
    """
    torch = sys.modules.get("torch")  # no object is of a class whose package was never loaded
    return torch is not None and isinstance(value, torch.nn.Module)


def _line(package: str, extra: str) -> str:
    return f'{package} is not installed: pip install "reticent[{extra}]"'
