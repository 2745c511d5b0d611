"""Optional dependencies: the one place where they are imported, and where a missing one says what to install."""

from __future__ import annotations

import importlib
from typing import Any

from reticent.core.errors import MissingExtra


def require(module: str, *, extra: str) -> Any:
    """The module called ``module``, imported.

    Args:
        module: its full name, such as ``matplotlib.figure``.
        extra: the extra of this package that installs it.

    Raises:
        MissingExtra: its package is not installed.
        ImportError: it is installed and broken, or lacks the submodule.

    Example:
        >>> require("json", extra="none").loads("[1]")
        [1]
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise MissingExtra(f'{package} is not installed; install it with: pip install "reticent[{extra}]"') from error
