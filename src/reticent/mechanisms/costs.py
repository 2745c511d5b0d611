"""From a guarantee to the accounting event of a mechanism that promises nothing finer."""

from __future__ import annotations

import math

from dp_accounting import dp_event

from reticent.accounting.events import PrivacyEvent
from reticent.core.guarantees import Guarantee, GuaranteeKind


def event_of(mechanism: str, guarantee: Guarantee) -> PrivacyEvent:
    """The event of one answer that is known only by its epsilon and delta.

    Every (epsilon, 0)-private mechanism is a post-processing of two-way randomised response at epsilon (Kairouz, Oh and
    Viswanath 2015, theorem 3.3), whichever adjacency it is stated in; so that event composes tightly. With a delta, or
    without privacy, ``dp_accounting`` has no such event and only the guarantee itself can be added up.

    Example:
        >>> from reticent.core import Replace
        >>> event_of("any", Guarantee(1.0, 0.0, Replace())).dp_event.num_buckets
        2
    """
    if guarantee.delta > 0 or guarantee.kind is not GuaranteeKind.DIFFERENTIAL_PRIVACY:
        return PrivacyEvent(mechanism, guarantee, dp_event.UnsupportedDpEvent())
    # The share of answers replaced by a fair coin: 2 / (1 + e^epsilon), written so that it cannot overflow.
    tail = math.exp(-guarantee.epsilon)
    return PrivacyEvent(mechanism, guarantee, dp_event.RandomizedResponseDpEvent(2.0 * tail / (1.0 + tail), 2))
