"""Kinds of attributes of a table: the public facts of each, and the encoding of a cell by it.

Every kind maps a cell by itself. Two cells of one attribute, whatever they hold, are at most 1
apart in l2 once they are encoded. Kinds of numbers give coordinates in [0, 1]. Kinds of codes
choose one of their coordinates, which then holds ``HALF_ROOT``.
"""

from __future__ import annotations

from reticent.tables.code_attributes import HALF_ROOT, Categorical, Hashed, OneHot, Truth
from reticent.tables.number_attributes import Instant, Numeric, Ordered

Attribute = Numeric | Categorical | OneHot | Instant | Truth | Ordered | Hashed

KINDS: dict[str, type[Attribute]] = {
    kind.kind: kind for kind in (Numeric, Categorical, OneHot, Instant, Truth, Ordered, Hashed)
}
"""The class of each kind, by the name that files of schemas have for it."""

__all__ = [
    "HALF_ROOT",
    "KINDS",
    "Attribute",
    "Categorical",
    "Hashed",
    "Instant",
    "Numeric",
    "OneHot",
    "Ordered",
    "Truth",
]
