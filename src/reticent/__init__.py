"""reticent: release what a neural network computed from private data, with a guarantee that can
be proved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.systems import (
        CertifiedClassifier,
        CertifiedEnsemble,
        ConvexCertifiedClassifier,
        PosthocClassifier,
        PosthocEncoder,
        PowerEncoder,
        PrivateKNNClassifier,
        PrivateKNNStudent,
        PublicRanges,
    )

__version__ = "0.1.0"

__all__ = [
    "CertifiedClassifier",
    "CertifiedEnsemble",
    "ConvexCertifiedClassifier",
    "PosthocClassifier",
    "PosthocEncoder",
    "PowerEncoder",
    "PrivateKNNClassifier",
    "PrivateKNNStudent",
    "PublicRanges",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """The estimators, imported when first asked for: torch takes seconds, and ``reticent
    --help`` should not.
    """
    if name in __all__:
        from reticent import systems

        return getattr(systems, name)
    raise AttributeError(f"module 'reticent' has no attribute {name!r}")
