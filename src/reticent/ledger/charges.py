"""Charges and budgets in whole units: what a request costs, and whether it still fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from sqlalchemy.engine import Row

from reticent.accounting.composition import smallest_epsilon
from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count, probability
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import GuaranteeKind
from reticent.core.scopes import Scope
from reticent.ledger.statements import statement_of
from reticent.ledger.units import delta_cost, delta_value, epsilon_cost, epsilon_value

_MOST_ANSWERS = 2**40
_MOST_TOGETHER = 2**16
"""Answers in one call that are composed optimally at most; the closed form holds one weight per
answer.
"""


@dataclass(frozen=True)
class Charge:
    """What a request costs in whole units.

    Attributes:
        epsilon: micro-epsilon.
        delta: pico-delta.
        rule: the composition theorem that gave the smallest epsilon for the call.
    """

    epsilon: int
    delta: int
    rule: str


@dataclass(frozen=True)
class Budget:
    """What is granted to a scope and what is left of it, in micro-epsilon and pico-delta.

    References:
        - Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go
          composition", arXiv:1605.08294, basic composition is a valid privacy filter.

    See Also:
        reticent.ledger.Ledger: keeps budgets.
        reticent.ledger.Spending: over time.
    """

    scope: Scope
    statement: str
    granted_epsilon: int
    granted_delta: int
    spent_epsilon: int
    spent_delta: int

    @classmethod
    def of_row(cls, row: Row[Any], statement: str) -> Self:
        """The budget that a row of the table ``budgets`` holds."""
        scope = Scope.stored(row.principal, row.subject, row.bundle)
        return cls(
            scope,
            statement,
            row.granted_epsilon,
            row.granted_delta,
            row.spent_epsilon,
            row.spent_delta,
        )

    @property
    def left_epsilon(self) -> int:
        """Micro-epsilon that may still be spent."""
        return self.granted_epsilon - self.spent_epsilon

    @property
    def left_delta(self) -> int:
        """Pico-delta that may still be spent."""
        return self.granted_delta - self.spent_delta

    def fits(self, charge: Charge) -> bool:
        """Whether ``charge`` would leave nothing below zero."""
        return charge.epsilon <= self.left_epsilon and charge.delta <= self.left_delta

    def describe(self) -> str:
        """Scope, granted, spent, left in one phrase."""
        return (
            f"{self.scope.describe()}: "
            f"granted epsilon={epsilon_value(self.granted_epsilon):g}, "
            f"delta={delta_value(self.granted_delta):g}; "
            f"spent epsilon={epsilon_value(self.spent_epsilon):g}, "
            f"delta={delta_value(self.spent_delta):g}; "
            f"left epsilon={epsilon_value(self.left_epsilon):g}, "
            f"delta={delta_value(self.left_delta):g}"
        )


def charge_of(event: PrivacyEvent, *, answers: int, slack_delta: float) -> Charge:
    """What ``answers`` answers of ``event`` cost in one call, in whole units rounded up.

    Raises:
        IncompatibleGuarantees: the event promises no privacy.
        InvalidParameter: ``answers`` or ``slack_delta`` out of range.
    """
    guarantee = event.guarantee
    statement_of(guarantee)
    answers = count(answers, name="answers")
    if answers > _MOST_ANSWERS:
        raise InvalidInput(f"answers={answers}: expected at most 2**40 in one call")
    return _charge(
        guarantee.epsilon,
        guarantee.delta,
        guarantee.kind,
        answers,
        probability(slack_delta, name="slack_delta"),
    )


# A service repeats few kinds of request many times; exact fractions and optimal composition are
# worth keeping.
@lru_cache(maxsize=4096)
def _charge(
    epsilon: float, delta: float, kind: GuaranteeKind, answers: int, slack: float
) -> Charge:
    basic = Charge(
        epsilon_cost(epsilon, answers=answers), delta_cost(delta, answers=answers), "basic"
    )
    total_delta = answers * delta + slack
    composes = kind is GuaranteeKind.DIFFERENTIAL_PRIVACY and 1 < answers <= _MOST_TOGETHER
    if slack == 0 or total_delta >= 1 or not composes:
        return basic
    together = smallest_epsilon(
        epsilon=epsilon, answers=answers, delta=total_delta, answer_delta=delta
    )
    if together.winner == "basic":
        return basic
    better = Charge(
        epsilon_cost(max(together.epsilon, 1e-6), answers=1),
        delta_cost(total_delta, answers=1),
        together.winner,
    )
    return better if better.epsilon < basic.epsilon else basic


def largest_fitting(event: PrivacyEvent, slack_delta: float, standing: Sequence[Budget]) -> int:
    """Largest number of answers of ``event`` whose charge fits into every budget of
    ``standing``.
    """

    def fits(answers: int) -> bool:
        charge = charge_of(event, answers=answers, slack_delta=slack_delta)
        return all(budget.fits(charge) for budget in standing)

    if not fits(1):
        return 0
    lower, upper = 1, 2
    while upper <= _MOST_ANSWERS and fits(upper):
        lower, upper = upper, 2 * upper
    while upper - lower > 1:
        middle = (lower + upper) // 2
        lower, upper = (middle, upper) if fits(middle) else (lower, middle)
    return lower
