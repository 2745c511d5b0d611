"""The cost of one answer, as an immutable value that travels with the mechanism that causes it."""

from __future__ import annotations

from dataclasses import dataclass

from dp_accounting import dp_event

from reticent.core.guarantees import Guarantee


@dataclass(frozen=True)
class PrivacyEvent:
    """What one answer of a mechanism costs.

    Attributes:
        mechanism: name of the mechanism that causes the cost.
        guarantee: the (epsilon, delta, adjacency) of one answer.
        dp_event: the same cost in the vocabulary of ``dp_accounting``, from which tighter composition
            is computed; an ``UnsupportedDpEvent`` where only ``guarantee`` is known.
    """

    mechanism: str
    guarantee: Guarantee
    dp_event: dp_event.DpEvent
