"""Optional dependencies, imported in this one place. A missing one says what to install."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any, TypeGuard

from reticent.core.errors import MissingExtra

WHOLE_MODULES = {
    "torch": "networks",
    "fastapi": "service",
    "h11": "service",
    "starlette": "service",
    "uvicorn": "service",
}
"""Packages that some modules import in their first lines, and the extra of each."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """Return the message for a module that lacks an optional package, or None if something else is
    missing.

    Example:
        >>> print(missing_extra(ModuleNotFoundError(name="torch")))
        torch is not installed: pip install "torch>=2.4" (extra "networks")
        >>> missing_extra(ModuleNotFoundError(name="numpy")) is None
        True
    """
    package = (error.name or "").partition(".")[0]
    if package not in WHOLE_MODULES:
        return None
    return MissingExtra(_line(package, WHOLE_MODULES[package]))


def require(module: str, *, extra: str, instead: str = "") -> Any:
    """Import and return the module called ``module``.

    Args:
        module: full name, such as ``matplotlib.figure``.
        extra: the extra of this package that installs it.
        instead: the caller's alternative without it, for the message.

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
    """Return whether ``value`` is a torch module, without importing torch.

    Example:
        >>> is_torch_module("a name")
        False
    """
    torch = sys.modules.get("torch")  # no object is of a class whose package was never loaded
    return torch is not None and isinstance(value, torch.nn.Module)


def requirements(extra: str) -> list[str]:
    """Return the requirements of an extra of this package, from its metadata.

    A name and its versions also work for a user who has only a wheel. `pip install "reticent[...]"`
    would look for the package on an index.

    Args:
        extra: the extra's name. An unknown extra has no requirements.

    Example:
        >>> requirements("networks")
        ['torch>=2.4']
    """
    from importlib.metadata import PackageNotFoundError, requires  # slow, and rarely needed

    try:
        declared = requires("reticent") or []
    except PackageNotFoundError:  # a source tree that was put on the path
        return [f"reticent[{extra}]"]
    found: list[str] = []
    for line in declared:
        requirement, _, marker = line.partition(";")
        if not re.search(f"""extra == ['"]{extra}['"]""", marker) or not _here(marker):
            continue
        inner = re.fullmatch(r"reticent\[(.*)\]", requirement.strip())
        found += (
            [each for name in inner[1].split(",") for each in requirements(name)]
            if inner
            else [requirement.strip()]
        )
    return list(dict.fromkeys(found))


def _here(marker: str) -> bool:
    """Return whether a marker's condition on the system holds on this one."""
    conditions = re.findall(r"""sys_platform ([!=]=) ['"](\w+)['"]""", marker)
    return all((sys.platform == name) == (sign == "==") for sign, name in conditions)


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra, for a message.

    Example:
        >>> how_to_install("networks")
        'pip install "torch>=2.4" (extra "networks")'
    """
    wanted = " ".join(f'"{each}"' for each in requirements(extra))
    return f'pip install {wanted} (extra "{extra}")'


def _line(package: str, extra: str) -> str:
    return f"{package} is not installed: {how_to_install(extra)}"
