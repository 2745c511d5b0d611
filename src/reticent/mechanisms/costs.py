"""From a guarantee to the accounting event of a mechanism that promises nothing finer."""

from __future__ import annotations

import math
from collections.abc import Callable

from dp_accounting import dp_event

from reticent.accounting.approximate_rdp import ApproximateRdp
from reticent.accounting.events import PrivacyEvent
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Guarantee, GuaranteeKind

_ORDERS = (*range(2, 65), *(round(64 * 2 ** (step / 4)) for step in range(1, 33)))
"""Integer Rényi orders up to 16,384: one answer of a sampled mechanism is best stated at large ones."""


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


def rdp_epsilon(curve: Callable[[tuple[int, ...]], ApproximateRdp], *, delta: float) -> float:
    """Epsilon at ``delta`` of one answer, from its Rényi divergences at integer orders, their slack taken off ``delta``.

    Args:
        curve: from orders to divergences and their slack.
        delta: in (0, 1).

    Returns:
        At least 1e-12, so that it can stand in a ``Guarantee``.

    Raises:
        InvalidParameter: ``delta`` is too small for the slack.
    """
    epsilon = curve(_ORDERS).epsilon(delta=delta)
    if math.isinf(epsilon):
        raise InvalidParameter(f"delta={delta!r}: expected more; the noise is too small for a statement at it")
    return max(epsilon, 1e-12)
