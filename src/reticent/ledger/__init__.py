"""Durable budgets: who may still ask what, for many processes, through crashes, a year later."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.ledger.charges import Budget, Charge, Preview, PreviewEach
    from reticent.ledger.charging import Reservation
    from reticent.ledger.counters import PlanCounter
    from reticent.ledger.leases import Lease, Leases
    from reticent.ledger.ledger import Ledger
    from reticent.ledger.reports import Account, LedgerReport, Spending
    from reticent.ledger.verification import Verification
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "Account",
    "Budget",
    "Charge",
    "Lease",
    "Leases",
    "Ledger",
    "LedgerReport",
    "PlanCounter",
    "Preview",
    "PreviewEach",
    "Reservation",
    "Spending",
    "Verification",
]
