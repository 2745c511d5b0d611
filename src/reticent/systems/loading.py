"""Any bundle as the fitted estimator that wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reticent.core.errors import InvalidInput
from reticent.core.lazy import imported
from reticent.release.bundle import Bundle
from reticent.systems.methods import BUILT_IN, find_methods

VALUE_MODEL = "ValueModel"
"""What a stored model of released values says that it is; see ``reticent.systems.value_models``."""

_TAKE_MODULES = ("PosthocEncoder", "PosthocClassifier", "CodeEncoder")


def load(folder: str | Path, *, trusted_key: str | Path | None = None, embedder: Any = None) -> Any:
    """Return the fitted estimator that a bundle holds, whichever estimator wrote it.

    Only the module of that estimator is imported. A bundle whose embedder and network are plain
    arrays answers without torch.

    Args:
        folder: the bundle, as ``save`` wrote it.
        trusted_key: file with the public key that must have signed the bundle, checked before
            anything else is read, or None for a bundle that is trusted as its folder is.
        embedder: the user's own module, where a posthoc bundle or a code was fitted with one
            whose code cannot be read.

    Returns:
        An instance of the class that wrote the bundle, fitted, or a stored ``ValueModel``.

    Raises:
        InvalidInput: no such folder, an estimator that is not known here, or a bundle that needs
            a module of the user's own.
        CorruptBundle: the bundle is damaged.
        UntrustedSignature: not signed by ``trusted_key``.
        MissingExtra: this bundle needs a package that is not installed.

    Example:
        >>> load("no/such/folder")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        reticent.core.errors.InvalidInput: folder='no/such/folder': expected a bundle folder, ...
    """
    name = Bundle.read(folder, trusted_key=trusted_key).system
    if name == VALUE_MODEL:
        from reticent.systems.value_models import ValueModel

        return ValueModel.load(folder, trusted_key=trusted_key)
    kind = _estimator(name, f"folder={str(folder)!r}")
    if embedder is None:
        return kind.load(folder, trusted_key=trusted_key)
    if name not in _TAKE_MODULES:
        raise InvalidInput(
            f"embedder: expected for a posthoc bundle or a code only, this is a {name}"
        )
    return kind.load(folder, embedder=embedder, trusted_key=trusted_key)


def _estimator(name: str, where: str) -> Any:
    """Return the class of the name that a bundle states. Other packages are asked for other
    names only.
    """
    known = {method.name: method for method in BUILT_IN if method.role == "estimator"}
    if name in known:
        kind = imported(known[name].target.partition(":")[0], name)
    else:
        offered = find_methods().methods
        known = {method.name: method for method in offered if method.role == "estimator"}
        kind = known[name].load() if name in known else None
    if not callable(getattr(kind, "load", None)):
        raise InvalidInput(
            f"{where}: holds a {name}, which no installed package knows how to load; expected one "
            f"of {', '.join(known)}"
        )
    return kind
