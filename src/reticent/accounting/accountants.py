"""Accountants, which state the total (epsilon, delta) of many answers, and one by Rényi
divergences.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from reticent.accounting.conversion import epsilon_of_rdp
from reticent.accounting.costs import elementary_costs
from reticent.accounting.events import Cost, PrivacyEvent, StatedCost
from reticent.accounting.renyi import DEFAULT_ORDERS, rdp_curve
from reticent.core.arrays import Array
from reticent.core.checks import count, probability
from reticent.core.errors import IncompatibleGuarantees, InvalidParameter
from reticent.core.guarantees import Adjacency


class Accountant(ABC):
    """Count answers under one adjacency and state their total.

    **Guarantee.** The total holds for answers whose *values* may depend on earlier answers, while
    the list of events is fixed in advance. For events that are themselves chosen from earlier
    answers use ``reticent.ledger``.

    Args:
        adjacency: the one adjacency that every counted event must have.

    Utility:
        Subclasses differ in how close the total is to the least possible one. None is below it.

    References:
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, section 3.5 (composition).
        - Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go
          composition", arXiv:1605.08294 (events that are chosen from earlier answers need a
          filter).

    See Also:
        reticent.accounting.RdpAccountant: the default.
        reticent.accounting.GaussianAccountant: exact, for Gaussian noise alone.
        reticent.accounting.PldAccountant: close to exact, for anything.
        reticent.ledger.Ledger: for events that are chosen adaptively.
    """

    def __init__(self, adjacency: Adjacency) -> None:
        self.adjacency = adjacency
        self._counted: dict[Cost, int] = {}

    def compose(self, event: PrivacyEvent, answers: int = 1) -> Self:
        """Count ``answers`` answers of ``event``: all of them, or none if it raises.

        Raises:
            IncompatibleGuarantees: another adjacency or kind, or a mechanism that this accountant
                has no formula for.
            InvalidParameter: ``answers`` is not an integer of at least 1.
        """
        answers = count(answers, name="answers")
        if event.guarantee.adjacency != self.adjacency:
            raise IncompatibleGuarantees(
                "costs compose only within one adjacency: this accountant counts "
                f"{self.adjacency.describe()}, "
                f"{event.mechanism} protects {event.guarantee.adjacency.describe()}"
            )
        costs = elementary_costs(event)
        for cost in costs:
            self._check(cost, event.mechanism)
        for cost in costs:
            self._counted[cost] = self._counted.get(cost, 0) + answers
        return self

    @abstractmethod
    def epsilon(self, *, delta: float) -> float:
        """Return the total epsilon at ``delta``, infinite if ``delta`` cannot be reached."""

    @abstractmethod
    def _check(self, cost: Cost, mechanism: str) -> None:
        """Raise IncompatibleGuarantees if there is no formula for an elementary cost."""


class RdpAccountant(Accountant):
    """Rényi differential privacy on a list of orders: fast, additive, a little loose.

    A part of which only (epsilon, delta) is stated is counted as randomised response with
    probability 1 - delta. The deltas are set aside and come off the target.

    Args:
        adjacency: the one adjacency of all counted events.
        orders: Rényi orders above 1, or None for ``DEFAULT_ORDERS``.

    Edge cases: without any answer epsilon is 0. delta = 0 gives infinity, since no finite order
    reaches it.

    Example:
        >>> from reticent.accounting import GaussianCost
        >>> from reticent.core import AddRemove, Guarantee
        >>> event = PrivacyEvent("gaussian", Guarantee(0.5, 1e-5, AddRemove()), GaussianCost(20.0))
        >>> round(RdpAccountant(AddRemove()).compose(event, 100).epsilon(delta=1e-5), 4)
        2.1657

    Utility:
        9 % above the exact total for 100 Gaussian answers at noise multiplier 20 (2.166 instead of
        1.993).

    Runtime:
        O(distinct events times orders). A total of one event takes 0.05 ms on one core
        (benchmarks/runtimes.py), milliseconds where events are sampled.

    References:
        - Mironov (2017), "Rényi differential privacy", arXiv:1702.07476.
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, proposition 12 (conversion).

    See Also:
        reticent.accounting.GaussianAccountant: exact, for Gaussian noise alone.
        reticent.accounting.PldAccountant: closer to exact.
    """

    def __init__(self, adjacency: Adjacency, orders: Sequence[float] | None = None) -> None:
        super().__init__(adjacency)
        self.orders: Array = np.asarray(
            DEFAULT_ORDERS if orders is None else orders, dtype=np.float64
        )
        if self.orders.size == 0 or not np.all(self.orders > 1):
            raise InvalidParameter("orders: expected at least one number, each above 1")

    @property
    def rdp(self) -> Array:
        """Total Rényi divergence at ``orders``, shape (k,), without the stated deltas."""
        total = np.zeros_like(self.orders)
        for cost, times in self._counted.items():
            total += times * rdp_curve(cost, tuple(self.orders.tolist()))
        return total

    def epsilon(self, *, delta: float) -> float:
        """Return the total epsilon, as ``Accountant.epsilon``."""
        delta = probability(delta, name="delta")
        if not self._counted:
            return 0.0
        log_kept = self._log_kept()
        spare = (delta + math.expm1(log_kept)) / math.exp(log_kept)
        return epsilon_of_rdp(self.orders, self.rdp, spare)[0] if spare > 0 else math.inf

    def _log_kept(self) -> float:
        """Return the logarithm of the probability that no stated delta strikes."""
        stated = [
            (cost, times) for cost, times in self._counted.items() if isinstance(cost, StatedCost)
        ]
        return math.fsum(times * math.log1p(-cost.delta) for cost, times in stated)

    def _check(self, cost: Cost, mechanism: str) -> None:
        """Every elementary cost has a divergence."""
