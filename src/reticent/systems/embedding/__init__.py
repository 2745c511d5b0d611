"""From an input to the embedding in which neighbours are measured: a beta-VAE, a user's module,
or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.core.arrays import Arrays
from reticent.systems.embedding.embedding import (
    Embedding,
    IdentityEmbedding,
    check_sizes,
    domain_of,
    restore,
)

if TYPE_CHECKING:
    from reticent.systems.embedding.modules import BetaVaeEmbedding, ModuleEmbedding
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "Arrays",
    "BetaVaeEmbedding",
    "Embedding",
    "IdentityEmbedding",
    "ModuleEmbedding",
    "check_sizes",
    "domain_of",
    "restore",
]
