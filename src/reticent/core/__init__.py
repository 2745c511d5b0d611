"""The shared vocabulary: norms, regions, guarantees, releases, scopes, errors. No torch here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.core.guarantees import (
        AddRemove,
        Adjacency,
        Guarantee,
        GuaranteeCard,
        GuaranteeKind,
        Neighborhood,
        Replace,
        Unit,
    )
    from reticent.core.norms import Norm, operator_norm, sign_patterns
    from reticent.core.regions import Box
    from reticent.core.releases import Receipt, Release
    from reticent.core.scopes import Policy, Scope
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "AddRemove",
    "Adjacency",
    "Box",
    "Guarantee",
    "GuaranteeCard",
    "GuaranteeKind",
    "Neighborhood",
    "Norm",
    "Policy",
    "Receipt",
    "Release",
    "Replace",
    "Scope",
    "Unit",
    "operator_norm",
    "sign_patterns",
]
