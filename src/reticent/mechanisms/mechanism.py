"""The interface of every mechanism: a name, a guarantee, and the event that a ledger books."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from reticent.accounting.events import Cost, PrivacyEvent
from reticent.core.guarantees import Adjacency, Guarantee


class Mechanism:
    """A frozen dataclass that releases answers, and states the cost of one.

    Attributes:
        name: name of the mechanism, for receipts and events.
        epsilon: the epsilon of one answer, where it is a field.
        adjacency: the relation of neighbours.
        rests_on_float64: whether the guarantee needs float64 to add and multiply as IEEE 754 says.
            False only where it rests on whole numbers alone.
    """

    name: ClassVar[str]
    rests_on_float64: ClassVar[bool] = True
    epsilon: float
    adjacency: Adjacency

    @cached_property
    def guarantee(self) -> Guarantee:
        """Cost of one answer, withheld or not. A class without a field ``delta`` has delta 0."""
        return Guarantee(self.epsilon, getattr(self, "delta", 0.0), self.adjacency)

    @property
    def cost(self) -> Cost | None:
        """The same cost in finer terms, for a tighter total of many answers, or None where
        ``guarantee`` is all that is known.
        """
        return None

    @cached_property
    def event(self) -> PrivacyEvent:
        """Cost of one answer, for accounting."""
        return PrivacyEvent(self.name, self.guarantee, self.cost)
