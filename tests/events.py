"""Events that cost what a test says."""

from __future__ import annotations

from reticent.accounting import Cost, PrivacyEvent
from reticent.core import AddRemove, Adjacency, Guarantee, GuaranteeKind


def make_event(
    epsilon: float = 0.1,
    delta: float = 0.0,
    adjacency: Adjacency | None = None,
    kind: GuaranteeKind = GuaranteeKind.DIFFERENTIAL_PRIVACY,
    event: Cost | None = None,
) -> PrivacyEvent:
    """An event of one record more or less, where nothing else is said."""
    guarantee = Guarantee(epsilon, delta, adjacency or AddRemove(), kind)
    return PrivacyEvent("test", guarantee, event)
