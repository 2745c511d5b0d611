"""The guarantee of one answer, from its Rényi divergence."""

from __future__ import annotations

import math
from collections.abc import Callable

from reticent.accounting.approximate_rdp import ApproximateRdp
from reticent.core.errors import InvalidParameter

_ORDERS = (*range(2, 65), *(round(64 * 2 ** (step / 4)) for step in range(1, 33)))
"""Integer Rényi orders up to 16,384. One answer of a sampled mechanism is best stated at large
ones.
"""


def rdp_epsilon(curve: Callable[[tuple[int, ...]], ApproximateRdp], *, delta: float) -> float:
    """Return epsilon at ``delta`` of one answer, from its Rényi divergences at integer orders, with
    their slack taken off ``delta``.

    Args:
        curve: function from orders to divergences and their slack.
        delta: in (0, 1).

    Returns:
        At least 1e-12, so that it can stand in a ``Guarantee``.

    Raises:
        InvalidParameter: ``delta`` is too small for the slack.
    """
    epsilon = curve(_ORDERS).epsilon(delta=delta)
    if math.isinf(epsilon):
        raise InvalidParameter(
            f"delta={delta!r}: expected more; the noise is too small for a statement at it"
        )
    return max(epsilon, 1e-12)
