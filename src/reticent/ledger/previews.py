"""What a request would do, asked before it is made."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.core.scopes import Scope
from reticent.ledger.charges import Budget, Charge


@dataclass(frozen=True)
class Preview:
    """What a request would do; nothing was spent.

    Attributes:
        fits: whether it would be accepted now.
        charge: what it would cost.
        largest: the largest number of answers that would fit now.
        budgets: every budget that covers it, as it stands.
    """

    fits: bool
    charge: Charge
    largest: int
    budgets: tuple[Budget, ...]


@dataclass(frozen=True)
class PreviewEach:
    """What a request under many scopes would do; nothing was spent.

    Attributes:
        fits: whether all of it would be accepted now.
        lacking: scopes that a budget which they need cannot pay for, by itself or together with the
            others; () where all fits.
        reason: what ``reserve_each`` would say; "" where all fits.
    """

    fits: bool
    lacking: tuple[Scope, ...]
    reason: str
