"""Any bundle as the fitted estimator that wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from reticent.bundles.bundle import Bundle
from reticent.core.errors import InvalidInput
from reticent.core.lazy import lazy_names

if TYPE_CHECKING:
    from reticent.systems.certified.classifier import CertifiedClassifier
    from reticent.systems.certified.ensemble import CertifiedEnsemble
    from reticent.systems.posthoc.classifier import PosthocClassifier
    from reticent.systems.posthoc.encoder import PosthocEncoder
    from reticent.systems.power.encoder import PowerEncoder
    from reticent.systems.private_knn.student import PrivateKNNStudent

    Fitted = (
        PosthocEncoder
        | PosthocClassifier
        | CertifiedClassifier
        | CertifiedEnsemble
        | PowerEncoder
        | PrivateKNNStudent
    )

SYSTEMS = {
    "PosthocEncoder": "reticent.systems.posthoc.encoder",
    "PosthocClassifier": "reticent.systems.posthoc.classifier",
    "CertifiedClassifier": "reticent.systems.certified.classifier",
    "CertifiedEnsemble": "reticent.systems.certified.ensemble",
    "PowerEncoder": "reticent.systems.power.encoder",
    "PrivateKNNStudent": "reticent.systems.private_knn.student",
}
"""Every estimator that is stored, and the module that defines it. ``PrivateKNNClassifier`` is not
here: it answers from the private records, and has no bundle."""


def load(folder: str | Path, *, trusted_key: str | Path | None = None) -> Fitted:
    """The fitted estimator that a bundle holds, whichever estimator wrote it.

    Only the module of that estimator is imported. For a bundle that was fitted with a module of
    your own, call ``load`` of its class, which takes the module.

    Args:
        folder: the bundle, as ``save`` wrote it.
        trusted_key: file with the public key that must have signed the bundle, checked before
            anything else is read; None for a bundle that is trusted as its folder is.

    Returns:
        An instance of the class that wrote the bundle, fitted.

    Raises:
        InvalidInput: no such folder, an estimator that is not known here, or a bundle that needs
            a module of the user's own.
        CorruptBundle: the bundle is damaged.
        UntrustedSignature: not signed by ``trusted_key``.

    Example:
        >>> load("no/such/folder")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        reticent.core.errors.InvalidInput: folder='no/such/folder': expected a bundle folder, ...
    """
    name = Bundle.read(folder, trusted_key=trusted_key).system
    if name not in SYSTEMS:
        raise InvalidInput(
            f"folder={str(folder)!r}: holds a {name}, expected one of {', '.join(SYSTEMS)}"
        )
    find = lazy_names("reticent.systems", {SYSTEMS[name]: (name,)})
    return cast("Fitted", find(name).load(folder, trusted_key=trusted_key))
