"""The estimators, scikit-learn's way, with release, guarantee, card, save and load."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.systems.certified.classifier import CertifiedClassifier
    from reticent.systems.certified.ensemble import CertifiedEnsemble
    from reticent.systems.posthoc.classifier import PosthocClassifier
    from reticent.systems.posthoc.encoder import PosthocEncoder
    from reticent.systems.power.encoder import PowerEncoder
    from reticent.systems.power.servers import Server, train_server
    from reticent.systems.private_knn.classifier import PrivateKNNClassifier
    from reticent.systems.private_knn.student import PrivateKNNStudent
    from reticent.systems.public_ranges import PublicRanges
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(
        __name__,
        {
            "reticent.systems.certified.classifier": ("CertifiedClassifier",),
            "reticent.systems.certified.ensemble": ("CertifiedEnsemble",),
            "reticent.systems.posthoc.classifier": ("PosthocClassifier",),
            "reticent.systems.posthoc.encoder": ("PosthocEncoder",),
            "reticent.systems.power.encoder": ("PowerEncoder",),
            "reticent.systems.power.servers": ("Server", "train_server"),
            "reticent.systems.private_knn.classifier": ("PrivateKNNClassifier",),
            "reticent.systems.private_knn.student": ("PrivateKNNStudent",),
            "reticent.systems.public_ranges": ("PublicRanges",),
        },
    )

__all__ = [
    "CertifiedClassifier",
    "CertifiedEnsemble",
    "PosthocClassifier",
    "PosthocEncoder",
    "PowerEncoder",
    "PrivateKNNClassifier",
    "PrivateKNNStudent",
    "PublicRanges",
    "Server",
    "train_server",
]
