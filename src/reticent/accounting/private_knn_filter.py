"""A Private-kNN budget that is spent as queries come. Every query pays for its bit, and for a label
only if it passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from reticent.accounting.private_knn import PrivateKnnSteps, label_rdp, screening_bit_rdp
from reticent.core.arrays import Array
from reticent.core.checks import positive, probability
from reticent.core.errors import BudgetExceeded, InvalidParameter
from reticent.core.processes import HomeProcess


class PrivateKnnFilter:
    """A guard that lets queries through while a bit and a label still fit into a total.

    The numbers of bits and labels need not be known. Few passed queries leave room for more
    queries, and the other way round. ``private_knn_total`` is the better choice where both numbers
    are known, because it shares no delta between orders.

    **Guarantee.** Everything released through the filter together is (epsilon,
    delta)-differentially private under the addition or removal of one record, fully adaptively. The
    argument is that of ``RdpFilter``: each order gets delta / len(orders), and a run goes on while
    any order has room. The slack of at most ``steps.answers`` labels (``ApproximateRdp``) comes off
    delta beforehand.

    Args:
        steps: noise and sampling. Its ``queries`` and ``answers`` are caps on what the filter lets
            through.
        epsilon: total epsilon, above 0.
        delta: total delta, in (0, 1).
        orders: few integers of at least 2, fixed in advance.

    Raises:
        InvalidParameter: no order has room for one bit and one label, or a parameter is out of its
            range.

    Example:
        >>> steps = PrivateKnnSteps(
        ...     queries=4000,
        ...     answers=1000,
        ...     neighbours=300,
        ...     sampling_probability=0.15,
        ...     sigma_votes=40.0,
        ...     threshold=180.0,
        ...     sigma_screening=120.0,
        ... )
        >>> budget = PrivateKnnFilter(steps, epsilon=0.5, delta=1e-5, orders=[50])
        >>> budget.ask()
        >>> budget.answer()
        >>> budget.asked, budget.answered, budget.has_room
        (1, 1, True)

    Utility:
        A little dearer than ``private_knn_total`` of the same bits and labels, since delta is
        shared between orders.

    Runtime:
        O(orders) a query. The curves are computed once.

    References:
        - Feldman and Zrnic (2021), "Individual privacy accounting via a Rényi filter",
          arXiv:2008.11193 (the Rényi filter of one order).
        - Lécuyer (2021), "Practical privacy filters and odometers with Rényi differential privacy
          and applications to differentially private deep learning", arXiv:2103.01379 (the same,
          independently).
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187 (the release).

    See Also:
        reticent.accounting.private_knn_total: both numbers known.
        reticent.accounting.RdpFilter: any event.
    """

    def __init__(
        self, steps: PrivateKnnSteps, *, epsilon: float, delta: float, orders: Sequence[int]
    ) -> None:
        self.steps = steps
        self.asked = 0
        self.answered = 0
        self._passed = False
        self._home = HomeProcess()
        epsilon = positive(epsilon, name="epsilon")
        delta = probability(delta, name="delta", allow_zero=False)
        bit, label = screening_bit_rdp(steps, orders), label_rdp(steps, orders)
        spare = (steps.queries * bit + steps.answers * label).spare(epsilon=epsilon, delta=delta)
        if spare <= 0:
            raise InvalidParameter(
                f"delta={delta!r}: expected more than the slack of {steps.answers} labels at "
                f"epsilon={epsilon:g}"
            )
        self._bit, self._label = bit.divergences, label.divergences
        alphas = np.asarray(orders, dtype=np.float64)
        share = spare / alphas.size
        self._budget: Array = (
            epsilon - np.log1p(-1 / alphas) + np.log(share * alphas) / (alphas - 1)
        )
        if not self.has_room:
            raise InvalidParameter(
                f"orders={list(orders)}: expected one with room for a bit and a label in "
                f"epsilon={epsilon:g}, delta={delta:g}"
            )

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Copied here, so that a shallow copy does not share its home with the original.
        self.__dict__.update(state, _home=copy(state["_home"]))

    @property
    def has_room(self) -> bool:
        """True if another query may be asked, so that its bit and, should it pass, its label both
        fit. False in a child or a copy.
        """
        if not self._home.is_here:
            return False
        if self.asked >= self.steps.queries or self.answered >= self.steps.answers:
            return False
        spent = (self.asked + 1) * self._bit + (self.answered + 1) * self._label
        return bool(np.any(spent <= self._budget))

    def ask(self) -> None:
        """Charge the screening bit of one query. Call it before the bit is drawn.

        Raises:
            BudgetExceeded: the bit and a label do not fit. Nothing was charged.
        """
        if not self.has_room:
            raise BudgetExceeded(
                f"no room for another query after {self.asked} bits and {self.answered} labels; "
                f"caps are {self.steps.queries} queries and {self.steps.answers} labels"
            )
        self.asked += 1
        self._passed = True

    def answer(self) -> None:
        """Charge the label of the query that was asked last, once per query. Call it before the
        label is drawn.

        Raises:
            BudgetExceeded: no query was asked since the last label. Nothing was charged.
        """
        if not self._passed or not self._home.is_here:
            raise BudgetExceeded("no query was asked since the last label: call ask() first")
        self.answered += 1
        self._passed = False
