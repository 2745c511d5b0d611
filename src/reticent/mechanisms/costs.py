"""From the Rényi divergence of one answer to its guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from reticent.accounting.conversion import epsilon_of_rdp
from reticent.core.errors import InvalidParameter

_ORDERS = (*range(2, 65), *(round(64 * 2 ** (step / 4)) for step in range(1, 33)))
"""Integer Rényi orders up to 16,384: one answer of a sampled mechanism is best stated at large ones."""


def rdp_epsilon(divergence: Callable[[tuple[int, ...]], npt.NDArray[np.float64]], *, delta: float, slack: float = 0.0) -> float:
    """Epsilon at ``delta`` of one answer, from its Rényi divergence at integer orders.

    Args:
        divergence: from orders to divergences, shape (k,).
        delta: in (0, 1).
        slack: total variation to the law that the divergences are of, which is taken off ``delta`` twice and more.

    Returns:
        At least 1e-12, so that it can stand in a ``Guarantee``.

    Raises:
        InvalidParameter: ``delta`` is too small for the slack.
    """
    rdp = divergence(_ORDERS)
    epsilon, _ = epsilon_of_rdp(_ORDERS, rdp, delta)
    if slack > 0:
        spare = delta - slack * (1.0 + math.exp(min(epsilon + 1.0, 700.0)))
        if spare <= 0:
            raise InvalidParameter(f"delta={delta!r}: expected more; the noise is too small for a statement at it")
        epsilon, _ = epsilon_of_rdp(_ORDERS, rdp, spare)
    return max(epsilon, 1e-12)
