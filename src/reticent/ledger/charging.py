"""What a charge does inside its transaction, and what becomes of it outside: for one scope, or for
many at once. A charge that does not fit is refused, in words that say what would.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count
from reticent.core.errors import BudgetExceeded, InvalidInput
from reticent.core.scopes import Policy, Scope
from reticent.ledger import coverage, postings
from reticent.ledger.charges import (
    Budget,
    Charge,
    charge_of,
    delta_value,
    epsilon_value,
    largest_fitting,
    statement_of,
)
from reticent.ledger.coverage import Cover
from reticent.ledger.leases import block_size
from reticent.ledger.postings import Booking, Claim, Page
from reticent.ledger.reservations import Reservation, checked_text

_NAMED = 2
"""Scopes that a refusal names at most."""


@dataclass(frozen=True)
class Shortfall:
    """A budget that many claims do not fit into together, or a claim that no budget answers for.

    Attributes:
        budget: the budget, or None.
        claims: what it cannot pay for together.
        charge: their cost.
        reason: why there is no budget; "" where there is one.
    """

    budget: Budget | None
    claims: list[Claim]
    charge: Charge
    reason: str = ""


def checked_scopes(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    """What a request names, if it is scopes, at least one.

    Raises:
        InvalidInput: it is something else.
    """
    if isinstance(scopes, Scope | str):
        raise InvalidInput(
            f"scopes: expected one Scope for each answer, got a single {type(scopes).__name__}"
        )
    found = tuple(scopes)
    for scope in found:
        if not isinstance(scope, Scope):
            raise InvalidInput(f"scope: expected a Scope, got {type(scope).__name__}")
    if not found:
        raise InvalidInput("scopes: expected at least one Scope, got none")
    return found


def check_names(policy: Policy, scope: Scope) -> None:
    """Refuses a request that leaves out what the ledger's policy requires.

    Raises:
        InvalidInput: says which part.
    """
    for part in policy.required:
        if not scope.parts[part]:
            raise InvalidInput(
                f"scope: expected a {part}, which this ledger requires of every request, got "
                f"{scope.describe()}; name it, or "
                "change the ledger's policy with `reticent ledger policy`; nothing was charged"
            )


def uncovered(policy: Policy, cover: Cover) -> str:
    """Why no budget answers for a request that names what it must; "" where one does."""
    if not cover.budgets:
        return f"no budget covers {cover.scope.describe()}"
    for part in policy.required:
        if not any(getattr(row, part) for row in cover.budgets):
            return f"no budget names {part}={cover.scope.parts[part]}, as this ledger requires"
    return ""


def check_covered(policy: Policy, cover: Cover) -> None:
    """Refuses a request that no budget answers for.

    Raises:
        BudgetExceeded: says why.
    """
    reason = uncovered(policy, cover)
    if reason:
        raise BudgetExceeded(
            f"{reason}; requested more than the 0 that is left; the largest request that would "
            "fit is 0 answers; check the "
            "spelling, or grant a budget with `reticent ledger grant`; nothing was charged"
        )


def together(claims: Sequence[Claim]) -> Charge:
    """What claims of different scopes cost together."""
    return Charge(
        sum(claim.charge.epsilon for claim in claims),
        sum(claim.charge.delta for claim in claims),
        "basic",
    )


def shortfalls(claims: Sequence[Claim], statement: str, policy: Policy) -> list[Shortfall]:
    """Every budget that cannot pay for all its claims, and the claims that no budget answers
    for.
    """
    rows = {row.id: row for claim in claims for row in claim.cover.budgets}
    paying: defaultdict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        for row in claim.cover.budgets:
            paying[row.id].append(claim)
    reasons = [(claim, uncovered(policy, claim.cover)) for claim in claims]
    short = [Shortfall(None, [claim], claim.charge, reason) for claim, reason in reasons if reason]
    for number, mine in paying.items():
        budget, charge = Budget.of_row(rows[number], statement), together(mine)
        if not budget.fits(charge):
            short.append(Shortfall(budget, mine, charge))
    return short


def refusal_of_many(
    short: Sequence[Shortfall], scopes: int, answers: int, event: PrivacyEvent
) -> str:
    """What to tell who asked for answers under many scopes, some of which lack budget."""
    lacking = {claim.cover.scope for shortfall in short for claim in shortfall.claims}
    named = []
    for shortfall in short[:_NAMED]:
        if shortfall.budget is None:
            named.append(shortfall.reason)
            continue
        asked = sum(claim.answers for claim in shortfall.claims)
        fit = largest_fitting(event, 0.0, [shortfall.budget])
        named.append(
            f"{shortfall.budget.describe()}; requested of it "
            f"epsilon={epsilon_value(shortfall.charge.epsilon):g}, "
            f"delta={delta_value(shortfall.charge.delta):g} for {asked} answer(s), of which "
            f"{fit} would fit"
        )
    more = f" | and {len(short) - len(named)} more" if len(short) > len(named) else ""
    return (
        f"requested {answers} answer(s) of {event.mechanism} under {scopes} scope(s), each "
        "answer at "
        f"epsilon={event.guarantee.epsilon:g}, delta={event.guarantee.delta:g}; {len(lacking)} "
        "of the scopes lack budget: "
        f"{' | '.join(named)}{more}; grant more or leave their rows out; nothing was charged"
    )


def refusal(
    charge: Charge,
    event: PrivacyEvent,
    answers: int,
    slack_delta: float,
    standing: Sequence[Budget],
) -> str:
    """What to tell who asked for more answers under one scope than fit."""
    tightest = [budget.describe() for budget in standing if not budget.fits(charge)]
    return (
        f"requested {answers} answer(s) of {event.mechanism} at "
        f"epsilon={epsilon_value(charge.epsilon):g}, "
        f"delta={delta_value(charge.delta):g}; {' | '.join(tightest)}; "
        "the largest request that would fit is "
        f"{largest_fitting(event, slack_delta, standing)} answer(s); nothing was charged"
    )


Done = TypeVar("Done")
T = TypeVar("T")

Commit = Callable[[Sequence[Booking], str], None]
"""Ties bookings to a receipt, in a transaction of its own."""


@dataclass(frozen=True)
class Posting(Generic[Done, T]):
    """One thing to be posted to a ledger.

    Attributes:
        work: done in the transaction; it raises errors of reticent only before it writes.
        result: what comes of ``work``'s outcome once that is durable, or the refusal. It runs
            outside the transaction: finding the largest request that fits must not keep other
            writers waiting.
    """

    work: Callable[[Page], Done]
    result: Callable[[Done], T]


def charge_one(
    commit: Commit, scope: Scope, event: PrivacyEvent, *, answers: int, slack_delta: float
) -> Posting[Reservation | list[Budget], Reservation]:
    """The charge of one scope; see ``Ledger.reserve``."""
    answers = count(answers, name="answers")
    charge = charge_of(event, answers=answers, slack_delta=slack_delta)
    statement = statement_of(event.guarantee)
    mechanism = checked_text(event.mechanism, "mechanism")

    def work(page: Page) -> Reservation | list[Budget]:
        check_names(page.tip.policy, scope)
        cover = coverage.covering(page.connection, scope)
        check_covered(page.tip.policy, cover)
        coverage.check_statements(cover, statement)
        standing = [Budget.of_row(row, statement) for row in cover.budgets]
        if not all(budget.fits(charge) for budget in standing):
            return standing
        claims = [Claim(cover, answers, charge)]
        bookings = postings.post_charges(page, claims, statement=statement, mechanism=mechanism)
        return Reservation.of_bookings(commit, bookings, page.tip.ledger, charge)

    def result(done: Reservation | list[Budget]) -> Reservation:
        if isinstance(done, Reservation):
            return done
        raise BudgetExceeded(refusal(charge, event, answers, slack_delta, done))

    return Posting(work, result)


def charge_block(
    commit: Commit, scope: Scope, event: PrivacyEvent, *, most: int, least: int
) -> Posting[tuple[Reservation, int] | list[Budget], tuple[Reservation, int]]:
    """The charge of ``least`` to ``most`` answers of one scope, and how many they are; see
    ``Ledger.lease``.
    """
    wanted = charge_of(event, answers=least, slack_delta=0.0)
    statement = statement_of(event.guarantee)
    mechanism = checked_text(event.mechanism, "mechanism")

    def work(page: Page) -> tuple[Reservation, int] | list[Budget]:
        check_names(page.tip.policy, scope)
        cover = coverage.covering(page.connection, scope)
        check_covered(page.tip.policy, cover)
        coverage.check_statements(cover, statement)
        standing = [Budget.of_row(row, statement) for row in cover.budgets]
        if not all(budget.fits(wanted) for budget in standing):
            return standing
        answers = block_size(event, standing, most=most, least=least)
        charge = charge_of(event, answers=answers, slack_delta=0.0)
        claims = [Claim(cover, answers, charge)]
        bookings = postings.post_charges(page, claims, statement=statement, mechanism=mechanism)
        return Reservation.of_bookings(commit, bookings, page.tip.ledger, charge), answers

    def result(done: tuple[Reservation, int] | list[Budget]) -> tuple[Reservation, int]:
        if isinstance(done, tuple):
            return done
        raise BudgetExceeded(refusal(wanted, event, least, 0.0, done))

    return Posting(work, result)


def charge_many(
    commit: Commit, scopes: Sequence[Scope], event: PrivacyEvent
) -> Posting[Reservation | list[Shortfall], Reservation]:
    """The charge of each answer to a scope of its own; see ``Ledger.reserve_each``."""
    answers = Counter(scopes)
    charges = {
        many: charge_of(event, answers=many, slack_delta=0.0) for many in set(answers.values())
    }
    statement = statement_of(event.guarantee)
    mechanism = checked_text(event.mechanism, "mechanism")

    def work(page: Page) -> Reservation | list[Shortfall]:
        for scope in answers:
            check_names(page.tip.policy, scope)
        claims = [
            Claim(cover, answers[cover.scope], charges[answers[cover.scope]])
            for cover in coverage.covering_each(page.connection, tuple(answers))
        ]
        for claim in claims:
            coverage.check_statements(claim.cover, statement)
        short = shortfalls(claims, statement, page.tip.policy)
        if short:
            return short
        bookings = postings.post_charges(page, claims, statement=statement, mechanism=mechanism)
        return Reservation.of_bookings(commit, bookings, page.tip.ledger, together(claims))

    def result(done: Reservation | list[Shortfall]) -> Reservation:
        if isinstance(done, Reservation):
            return done
        raise BudgetExceeded(refusal_of_many(done, len(answers), answers.total(), event))

    return Posting(work, result)
