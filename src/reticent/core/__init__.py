"""The shared vocabulary: norms, regions, guarantees, releases, errors. No torch here."""

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

__all__ = [
    "AddRemove",
    "Adjacency",
    "Box",
    "Guarantee",
    "GuaranteeCard",
    "GuaranteeKind",
    "Neighborhood",
    "Norm",
    "Receipt",
    "Release",
    "Replace",
    "Unit",
    "operator_norm",
    "sign_patterns",
]
