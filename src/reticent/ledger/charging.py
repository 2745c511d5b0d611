"""What a charge does inside its transaction, and what becomes of it outside: for one scope, or for
many at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count
from reticent.core.errors import BudgetExceeded
from reticent.core.scopes import Scope
from reticent.ledger import coverage, postings, refusals
from reticent.ledger.charges import Budget, charge_of
from reticent.ledger.leases import block_size
from reticent.ledger.postings import Booking, Claim, Page
from reticent.ledger.refusals import Shortfall
from reticent.ledger.reservations import Reservation, checked_text
from reticent.ledger.statements import statement_of

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
        refusals.check_names(page.tip.policy, scope)
        cover = coverage.covering(page.connection, scope)
        refusals.check_covered(page.tip.policy, cover)
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
        raise BudgetExceeded(refusals.refusal(charge, event, answers, slack_delta, done))

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
        refusals.check_names(page.tip.policy, scope)
        cover = coverage.covering(page.connection, scope)
        refusals.check_covered(page.tip.policy, cover)
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
        raise BudgetExceeded(refusals.refusal(wanted, event, least, 0.0, done))

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
            refusals.check_names(page.tip.policy, scope)
        claims = [
            Claim(cover, answers[cover.scope], charges[answers[cover.scope]])
            for cover in coverage.covering_each(page.connection, tuple(answers))
        ]
        for claim in claims:
            coverage.check_statements(claim.cover, statement)
        short = refusals.shortfalls(claims, statement, page.tip.policy)
        if short:
            return short
        bookings = postings.post_charges(page, claims, statement=statement, mechanism=mechanism)
        return Reservation.of_bookings(commit, bookings, page.tip.ledger, refusals.together(claims))

    def result(done: Reservation | list[Shortfall]) -> Reservation:
        if isinstance(done, Reservation):
            return done
        raise BudgetExceeded(refusals.refusal_of_many(done, len(answers), answers.total(), event))

    return Posting(work, result)
