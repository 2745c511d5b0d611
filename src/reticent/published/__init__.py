"""The papers' algorithms as printed, for study. None is private by type, so no release takes
one.

The five estimators are ``PublishedPosthocEncoder``, ``PublishedPowerEncoder``,
``PublishedPrivateKNN``, ``PublishedCertifiedClassifier`` and ``PublishedCertifiedEnsemble``. A
bundle of one is written and read with ``research=True`` only, and commands take it with
``--research``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.published.certified import (
        GlobalSensitivityResponse,
        PublishedCertifiedClassifier,
        PublishedCertifiedEnsemble,
        SmoothCauchy,
        published_vote_distances,
    )
    from reticent.published.obfuscators import CodedObfuscator, PublishedObfuscator
    from reticent.published.posthoc import PublishedPosthoc, Switches
    from reticent.published.posthoc_encoder import PublishedPosthocEncoder
    from reticent.published.power import PublishedPowerEncoder
    from reticent.published.power_network import PowerConfig
    from reticent.published.private_knn import (
        PublishedPrivateKNN,
        asymptotic_total,
        data_dependent_label_rdp,
        data_dependent_screening_rdp,
    )
    from reticent.published.research import AsPrinted, PublishedSystem, load_research
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "AsPrinted",
    "CodedObfuscator",
    "GlobalSensitivityResponse",
    "PowerConfig",
    "PublishedCertifiedClassifier",
    "PublishedCertifiedEnsemble",
    "PublishedObfuscator",
    "PublishedPosthoc",
    "PublishedPosthocEncoder",
    "PublishedPowerEncoder",
    "PublishedPrivateKNN",
    "PublishedSystem",
    "SmoothCauchy",
    "Switches",
    "asymptotic_total",
    "data_dependent_label_rdp",
    "data_dependent_screening_rdp",
    "load_research",
    "published_vote_distances",
]
