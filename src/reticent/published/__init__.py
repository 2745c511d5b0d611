"""The papers' algorithms as printed, for study. None is private by type, so no release takes
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.published.certified import (
        GlobalSensitivityResponse,
        SmoothCauchy,
        published_vote_distances,
    )
    from reticent.published.obfuscators import PublishedObfuscator
    from reticent.published.posthoc import PublishedPosthoc
    from reticent.published.power import PublishedPower
    from reticent.published.power_network import PowerConfig
    from reticent.published.printed import AsPrinted
    from reticent.published.private_knn import (
        data_dependent_label_rdp,
        data_dependent_screening_rdp,
    )
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(
        __name__,
        {
            "reticent.published.certified": (
                "GlobalSensitivityResponse",
                "SmoothCauchy",
                "published_vote_distances",
            ),
            "reticent.published.obfuscators": ("PublishedObfuscator",),
            "reticent.published.posthoc": ("PublishedPosthoc",),
            "reticent.published.power": ("PublishedPower",),
            "reticent.published.power_network": ("PowerConfig",),
            "reticent.published.printed": ("AsPrinted",),
            "reticent.published.private_knn": (
                "data_dependent_label_rdp",
                "data_dependent_screening_rdp",
            ),
        },
    )

__all__ = [
    "AsPrinted",
    "GlobalSensitivityResponse",
    "PowerConfig",
    "PublishedObfuscator",
    "PublishedPosthoc",
    "PublishedPower",
    "SmoothCauchy",
    "data_dependent_label_rdp",
    "data_dependent_screening_rdp",
    "published_vote_distances",
]
