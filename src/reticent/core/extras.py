"""Optional dependencies: the one place where they are imported, and where a missing one says
what to install.
"""

from __future__ import annotations

import importlib
from typing import Any

from reticent.core.errors import MissingExtra


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
        raise MissingExtra(
            f'{package} is not installed: pip install "reticent[{extra}]"{without}'
        ) from error
    return importlib.import_module(module)
