"""The cost of a request: whole units of epsilon and delta, and the statement that they belong to.

It also says whether they still fit. Budgets are integers, micro-epsilon and pico-delta, with costs
rounded up and grants rounded down. A statement is the kind and adjacency of a cost, which never mix
within one scope.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from reticent.accounting.composition import smallest_epsilon
from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count, positive, probability, real
from reticent.core.errors import IncompatibleGuarantees, InvalidParameter
from reticent.core.guarantees import Adjacency, Guarantee, GuaranteeKind
from reticent.core.scopes import Scope

if TYPE_CHECKING:
    from sqlalchemy.engine import Row

EPSILON_UNIT = 1_000_000
"""Units in an epsilon of 1: micro-epsilon."""

DELTA_UNIT = 1_000_000_000_000
"""Units in a delta of 1: pico-delta, 1e-12 each."""

LARGEST = 2**62
"""No cost or grant is larger than this many units, so that sums of two stay within 64 bits."""


def epsilon_cost(epsilon: float, *, answers: int) -> int:
    """Return the micro-epsilon of ``answers`` answers of ``epsilon``, rounded up once for the call.

    A float stands for its shortest decimal, so ten answers of 0.1 cost exactly 1. The cost is
    never below that decimal. It may be below the double itself by half a unit in its last place,
    for instance by 5.6e-18 at 0.1.

    Example:
        >>> epsilon_cost(0.1, answers=10), epsilon_cost(1e-9, answers=1)
        (1000000, 1)
    """
    return _units(
        count(answers, name="answers") * Fraction(repr(positive(epsilon, name="epsilon"))),
        EPSILON_UNIT,
        "epsilon",
    )


def delta_cost(delta: float, *, answers: int) -> int:
    """Return the pico-delta of ``answers`` answers of ``delta``, rounded up once for the call.

    Example:
        >>> delta_cost(1e-5, answers=3), delta_cost(0.0, answers=3), delta_cost(1e-15, answers=1)
        (30000000, 0, 1)
    """
    return _units(
        count(answers, name="answers") * Fraction(repr(probability(delta, name="delta"))),
        DELTA_UNIT,
        "delta",
    )


def epsilon_grant(epsilon: float) -> int:
    """Return the micro-epsilon in a grant of ``epsilon``, rounded down.

    Raises:
        InvalidParameter: less than one unit.

    Example:
        >>> epsilon_grant(2.5)
        2500000
    """
    units = -_units(-Fraction(repr(positive(epsilon, name="epsilon"))), EPSILON_UNIT, "epsilon")
    if units == 0:
        raise InvalidParameter(
            f"epsilon={epsilon!r}: expected at least 1e-6, the smallest amount that a ledger holds"
        )
    return units


def delta_grant(delta: float) -> int:
    """Return the pico-delta in a grant of ``delta``, rounded down. Less than 1e-12 is nothing.

    Example:
        >>> delta_grant(1e-5)
        10000000
    """
    return -_units(-Fraction(repr(probability(delta, name="delta"))), DELTA_UNIT, "delta")


def epsilon_value(units: int) -> float:
    """Return the epsilon of ``units`` micro-epsilon, for people to read."""
    return units / EPSILON_UNIT


def delta_value(units: int) -> float:
    """Return the delta of ``units`` pico-delta, for people to read."""
    return units / DELTA_UNIT


def _units(value: Fraction, unit: int, name: str) -> int:
    units = math.ceil(value * unit)
    if abs(units) > LARGEST:
        raise InvalidParameter(
            f"{name}: {float(abs(value)):g} in total is more than a ledger can hold "
            f"({LARGEST / unit:g})"
        )
    return units


def statement_of(guarantee: Guarantee) -> str:
    """Return kind and adjacency as canonical JSON.

    Raises:
        IncompatibleGuarantees: the guarantee promises no privacy.
    """
    return _canonical(guarantee.kind, guarantee.adjacency)


def _check_bookable(kind: GuaranteeKind) -> None:
    if kind is GuaranteeKind.NO_PRIVACY:
        raise IncompatibleGuarantees(
            "expected a cost with a privacy guarantee, got kind='no differential privacy': "
            "a ledger cannot book what promises nothing"
        )


@lru_cache(maxsize=1024)
def _canonical(kind: GuaranteeKind, adjacency: Adjacency) -> str:
    _check_bookable(kind)
    described = Guarantee(1.0, 0.0, adjacency, kind).to_dict()
    return json.dumps(
        {"adjacency": described["adjacency"], "kind": described["kind"]},
        sort_keys=True,
        separators=(",", ":"),
    )


def describe_statement(statement: str) -> str:
    """Describe a stored statement in one phrase."""
    guarantee = Guarantee.from_dict({"epsilon": 1.0, "delta": 0.0, **json.loads(statement)})
    return f"{guarantee.kind.value} for {guarantee.adjacency.describe()}"


_MOST_ANSWERS = 2**40
_MOST_TOGETHER = 2**16
"""Answers in one call that are composed optimally at most; the closed form holds one weight per
answer.
"""


@dataclass(frozen=True)
class Charge:
    """The cost of a request in whole units.

    Attributes:
        epsilon: micro-epsilon.
        delta: pico-delta.
        rule: the composition theorem that gave the smallest epsilon for the call.
    """

    epsilon: int
    delta: int
    rule: str

    def fits(self, standing: Iterable[Budget | Row[Any]]) -> bool:
        """Return whether it leaves nothing below zero in any of these budgets or rows of
        budgets.
        """
        return all(
            one.spent_epsilon + self.epsilon <= one.granted_epsilon
            and one.spent_delta + self.delta <= one.granted_delta
            for one in standing
        )


_BUDGET_COLUMNS = (
    *("statement", "granted_epsilon", "granted_delta"),
    *("spent_epsilon", "spent_delta"),
)


@dataclass(frozen=True)
class Budget:
    """A scope's grant and what is left of it, in micro-epsilon and pico-delta.

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
    def of_row(cls, row: Row[Any]) -> Self:
        """Return the budget in a row of the table ``budgets``, with its statement."""
        return cls.of_values(row._asdict())

    @classmethod
    def of_values(cls, row: Mapping[str, Any]) -> Self:
        """Return the budget that the columns of such a row say."""
        scope = Scope.stored(row["principal"], row["subject"], row["bundle"])
        return cls(scope, *(row[name] for name in _BUDGET_COLUMNS))

    @property
    def left_epsilon(self) -> int:
        """The micro-epsilon that may still be spent."""
        return self.granted_epsilon - self.spent_epsilon

    @property
    def left_delta(self) -> int:
        """The pico-delta that may still be spent."""
        return self.granted_delta - self.spent_delta

    @property
    def share_left(self) -> float:
        """The epsilon left as a share of what was granted, 0 to 1, and 0 where all of it was
        taken back.
        """
        return self.left_epsilon / self.granted_epsilon if self.granted_epsilon else 0.0

    def describe(self) -> str:
        """Describe scope, granted, spent and left in one phrase."""
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
    """Return the cost of ``answers`` answers of ``event`` in one call, in whole units rounded up.

    Raises:
        IncompatibleGuarantees: the event promises no privacy.
        InvalidParameter: ``answers`` or ``slack_delta`` out of range.
    """
    guarantee = event.guarantee
    answers = count(answers, name="answers")
    if answers > _MOST_ANSWERS:
        raise InvalidParameter(f"answers={answers}: expected at most 2**40 in one call")
    if type(slack_delta) is not float:
        slack_delta = real(slack_delta, name="slack_delta")
    return _charge(guarantee.epsilon, guarantee.delta, guarantee.kind, answers, slack_delta)


# A service repeats few kinds of request many times; exact fractions and optimal composition are
# worth keeping.
@lru_cache(maxsize=4096)
def _charge(
    epsilon: float, delta: float, kind: GuaranteeKind, answers: int, slack: float
) -> Charge:
    _check_bookable(kind)
    probability(slack, name="slack_delta")
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


def largest_fitting(
    event: PrivacyEvent, slack_delta: float, standing: Sequence[Budget | Row[Any]]
) -> int:
    """Return the largest number of answers of ``event`` whose charge fits every budget of
    ``standing``.
    """

    def fits(answers: int) -> bool:
        return charge_of(event, answers=answers, slack_delta=slack_delta).fits(standing)

    if not fits(1):
        return 0
    lower, upper = 1, 2
    while upper <= _MOST_ANSWERS and fits(upper):
        lower, upper = upper, 2 * upper
    while upper - lower > 1:
        middle = (lower + upper) // 2
        lower, upper = (middle, upper) if fits(middle) else (lower, middle)
    return lower


@dataclass(frozen=True)
class Preview:
    """The outcome that a request would have. Nothing was spent.

    Attributes:
        fits: whether it would be accepted now.
        charge: its cost.
        largest: the largest number of answers that would fit now.
        budgets: every budget that covers it, as it stands.
    """

    fits: bool
    charge: Charge
    largest: int
    budgets: tuple[Budget, ...]


@dataclass(frozen=True)
class PreviewEach:
    """The outcome that a request under many scopes would have. Nothing was spent.

    Attributes:
        fits: whether all of it would be accepted now.
        lacking: scopes that a budget which they need cannot pay for, by itself or together with the
            others, or () where all fits.
        reason: message that ``reserve_each`` would have, or "" where all fits.
    """

    fits: bool
    lacking: tuple[Scope, ...]
    reason: str
