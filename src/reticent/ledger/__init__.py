"""Durable budgets: who may still ask what, for many processes, through crashes, a year later."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.ledger.charges import Budget, Charge
    from reticent.ledger.counters import PlanCounter
    from reticent.ledger.exports import check_export
    from reticent.ledger.ledger import Ledger, Preview, PreviewEach
    from reticent.ledger.reports import Account, LedgerReport, Spending
    from reticent.ledger.reservations import Reservation
    from reticent.ledger.verification import Verification
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(
        __name__,
        {
            "reticent.ledger.charges": (
                "Budget",
                "Charge",
            ),
            "reticent.ledger.counters": ("PlanCounter",),
            "reticent.ledger.exports": ("check_export",),
            "reticent.ledger.ledger": (
                "Ledger",
                "Preview",
                "PreviewEach",
            ),
            "reticent.ledger.reports": (
                "Account",
                "LedgerReport",
                "Spending",
            ),
            "reticent.ledger.reservations": ("Reservation",),
            "reticent.ledger.verification": ("Verification",),
        },
    )

__all__ = [
    "Account",
    "Budget",
    "Charge",
    "Ledger",
    "LedgerReport",
    "PlanCounter",
    "Preview",
    "PreviewEach",
    "Reservation",
    "Spending",
    "Verification",
    "check_export",
]
