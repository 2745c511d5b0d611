"""Postings: what one transaction of the ledger reads and writes, for one scope or for thousands at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from reticent.accounting.chain import Entry
from reticent.accounting.charges import Budget, Charge
from reticent.accounting.coverage import AT_ONCE, NAMES, Cover, Key, accounts_within, budgets_at, key_of
from reticent.accounting.schema import accounts, budgets, covers, entries, head, statements
from reticent.accounting.scopes import Scope
from reticent.accounting.statements import describe_statement
from reticent.accounting.units import DELTA_UNIT, LARGEST, delta_value, epsilon_value
from reticent.core.errors import BudgetExceeded, IncompatibleGuarantees, InvalidInput


@dataclass(frozen=True)
class Tip:
    """The end of the chain, as one transaction finds it.

    Attributes:
        ledger: its name.
        seq: position of the last entry.
        digest: its digest, 32 bytes.
        at: time of what this transaction appends, microseconds since 1970, UTC.
    """

    ledger: str
    seq: int
    digest: bytes
    at: int


@dataclass(frozen=True)
class Claim:
    """What one scope is to be charged.

    Attributes:
        cover: the scope, its account and its budgets.
        answers: answers that are paid for.
        charge: their cost.
    """

    cover: Cover
    answers: int
    charge: Charge


@dataclass(frozen=True)
class Booking:
    """An entry that charged an account."""

    entry: Entry
    statement_id: int
    account_id: int


def last_entry(connection: Connection, *, at: int) -> Tip | None:
    """The end of the chain, None where there is no ledger; on PostgreSQL also the lock that makes writers take turns."""
    row = connection.execute(_HEAD).first()
    return None if row is None else Tip(row.ledger, row.seq, bytes(row.digest), at)


def statement_id_of(connection: Connection, statement: str) -> int:
    """The row of a kind and adjacency, made where it is new."""
    there = connection.execute(sa.select(statements.c.id).where(statements.c.statement == statement)).scalar()
    if there is None:
        there = connection.execute(statements.insert().values(statement=statement).returning(statements.c.id)).scalar_one()
    return int(there)


def post_charges(
    connection: Connection, tip: Tip, claims: Sequence[Claim], *, statement: str, mechanism: str
) -> tuple[Booking, ...]:
    """Charges accounts and budgets, and appends one entry per claim. Whether the claims fit was checked before.

    Args:
        connection: of a transaction that writes.
        tip: the end of the chain.
        claims: of different scopes, each with at least one budget.
        statement: kind and adjacency of all of them.
        mechanism: what causes the costs.
    """
    statement_id = int(claims[0].cover.budgets[0].statement_id)
    account_ids = _open_accounts(connection, tip, [claim.cover for claim in claims], statement_id)
    spent: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for claim in claims:
        for row in claim.cover.budgets:
            spent[row.id][0] += claim.charge.epsilon
            spent[row.id][1] += claim.charge.delta
    _change(connection, _CHARGE_BUDGETS, ((budget, {"e": e, "d": d}) for budget, (e, d) in spent.items()))
    bookings = []
    for seq, (claim, account_id) in enumerate(zip(claims, account_ids, strict=True), tip.seq + 1):
        units = (claim.charge.epsilon, claim.charge.delta)
        entry = Entry(seq, tip.at, "reserve", *key_of(claim.cover.scope), statement, *units, claim.answers, mechanism, 0, "")
        bookings.append(Booking(entry, statement_id, account_id))
    paid = ((booking.account_id, booking.entry) for booking in bookings)
    amounts = ((account, {"e": one.epsilon, "d": one.delta, "n": one.answers, "now": tip.at}) for account, one in paid)
    _change(connection, _CHARGE_ACCOUNTS, amounts)
    _append(connection, tip, [(booking.entry, statement_id, booking.account_id, None) for booking in bookings])
    return tuple(bookings)


def post_commits(connection: Connection, tip: Tip, bookings: Sequence[Booking], *, receipt: str) -> None:
    """Appends one entry per booking that ties it to ``receipt``."""
    lines: list[_Line] = []
    for seq, booking in enumerate(bookings, tip.seq + 1):
        paid = booking.entry
        names = (paid.principal, paid.subject, paid.bundle)
        entry = Entry(seq, tip.at, "commit", *names, paid.statement, 0, 0, 0, "", paid.seq, receipt)
        lines.append((entry, booking.statement_id, booking.account_id, None))
    _append(connection, tip, lines)
    _change(connection, _COUNT_COMMITS, ((booking.account_id, {}) for booking in bookings))


def post_grants(
    connection: Connection, tip: Tip, scopes: Sequence[Scope], *, statement: str, epsilon: int, delta: int
) -> list[Budget]:
    """Adds the same amount to the budget of every scope, and appends one entry for each.

    A new budget starts with what its scope has spent so far, on everything that it covers.

    Args:
        connection: of a transaction that writes; it must be undone if this raises.
        tip: the end of the chain.
        scopes: different ones.
        statement: kind and adjacency of the grants.
        epsilon, delta: micro-epsilon and pico-delta for each.

    Returns:
        The budgets as they stand now, in the order of ``scopes``.

    Raises:
        IncompatibleGuarantees, BudgetExceeded, InvalidInput: see ``Ledger.grant``.
    """
    statement_id = statement_id_of(connection, statement)
    standing = budgets_at(connection, scopes)
    new = [scope for scope in scopes if key_of(scope) not in standing]
    for scope in scopes:
        there = standing.get(key_of(scope))
        if there is not None and there.statement_id != statement_id:
            raise _mixed(scope, statement)
        before = (0, 0) if there is None else (there.granted_epsilon, there.granted_delta)
        _check_size(scope, before[0] + epsilon, before[1] + delta)
    _change(connection, _RAISE_BUDGETS, ((row.id, {"e": epsilon, "d": delta}) for row in standing.values()))
    if new:
        _open_budgets(connection, new, statement, statement_id, epsilon, delta)
    standing = budgets_at(connection, scopes)
    lines: list[_Line] = []
    for seq, scope in enumerate(scopes, tip.seq + 1):
        entry = Entry(seq, tip.at, "grant", *key_of(scope), statement, epsilon, delta, 0, "", 0, "")
        lines.append((entry, statement_id, None, standing[key_of(scope)].id))
    _append(connection, tip, lines)
    return [Budget.of_row(standing[key_of(scope)], statement) for scope in scopes]


_Line = tuple[Entry, int, int | None, int | None]
"""An entry with the ids of its statement, its account and its budget."""

_HEAD = sa.select(head.c.ledger, head.c.seq, head.c.digest).where(head.c.id == 1).with_for_update()
_MOVE_HEAD = head.update().where(head.c.id == 1).values(seq=sa.bindparam("to"), digest=sa.bindparam("tip"))
_CHARGE_BUDGETS = (
    budgets.update()
    .where(budgets.c.id.in_(sa.bindparam("ids", expanding=True)))
    .values(spent_epsilon=budgets.c.spent_epsilon + sa.bindparam("e"), spent_delta=budgets.c.spent_delta + sa.bindparam("d"))
)
_RAISE_BUDGETS = (
    budgets.update()
    .where(budgets.c.id.in_(sa.bindparam("ids", expanding=True)))
    .values(
        granted_epsilon=budgets.c.granted_epsilon + sa.bindparam("e"), granted_delta=budgets.c.granted_delta + sa.bindparam("d")
    )
)
_CHARGE_ACCOUNTS = (
    accounts.update()
    .where(accounts.c.id.in_(sa.bindparam("ids", expanding=True)))
    .values(
        spent_epsilon=accounts.c.spent_epsilon + sa.bindparam("e"),
        spent_delta=accounts.c.spent_delta + sa.bindparam("d"),
        answers=accounts.c.answers + sa.bindparam("n"),
        reservations=accounts.c.reservations + 1,
        last_at=sa.bindparam("now"),
    )
)
_COUNT_COMMITS = (
    accounts.update().where(accounts.c.id.in_(sa.bindparam("ids", expanding=True))).values(commits=accounts.c.commits + 1)
)


def _change(connection: Connection, update: sa.Update, amounts: Iterable[tuple[int, dict[str, int]]]) -> None:
    """One statement for all rows that change by the same amounts: people mostly have one row, or two, or three."""
    alike: defaultdict[tuple[tuple[str, int], ...], list[int]] = defaultdict(list)
    for number, change in amounts:
        alike[tuple(change.items())].append(number)
    for change_items, ids in alike.items():
        for start in range(0, len(ids), AT_ONCE):
            connection.execute(update, {**dict(change_items), "ids": ids[start : start + AT_ONCE]})


def _append(connection: Connection, tip: Tip, lines: Sequence[_Line]) -> None:
    digest, rows = tip.digest, []
    for entry, statement_id, account_id, budget_id in lines:
        digest = entry.digest(digest)
        rows.append(
            {
                **{name: getattr(entry, name) for name in _ENTRY_COLUMNS},
                "budget_id": budget_id,
                "account_id": account_id,
                "statement_id": statement_id,
                "reservation": entry.reservation or None,
                "digest": digest,
            }
        )
    connection.execute(entries.insert(), rows)
    connection.execute(_MOVE_HEAD, {"to": lines[-1][0].seq, "tip": digest})


_ENTRY_COLUMNS = ("seq", "at", "action", "epsilon", "delta", "answers", "mechanism", "receipt")


def _open_accounts(connection: Connection, tip: Tip, wanted: Sequence[Cover], statement_id: int) -> list[int]:
    """The account of every cover, made where it is new."""
    new = {key_of(cover.scope): cover for cover in wanted if cover.account_id is None}
    made: dict[Key, int] = {}
    if new:
        zeros = dict.fromkeys(("spent_epsilon", "spent_delta", "answers", "reservations", "commits"), 0)
        rest = {**zeros, "statement_id": statement_id, "last_at": tip.at}
        insert = accounts.insert().returning(accounts.c.id, *(accounts.c[name] for name in NAMES))
        for row in connection.execute(insert, [{**cover.scope.parts, **rest} for cover in new.values()]):
            made[row.principal, row.subject, row.bundle] = row.id
        links = [
            {"account_id": made[key], "budget_id": row.id, "statement_id": statement_id}
            for key, cover in new.items()
            for row in cover.budgets
        ]
        connection.execute(covers.insert(), links)
    return [made[key_of(cover.scope)] if cover.account_id is None else cover.account_id for cover in wanted]


def _open_budgets(
    connection: Connection, scopes: Sequence[Scope], statement: str, statement_id: int, epsilon: int, delta: int
) -> None:
    counted = accounts_within(connection, scopes)
    rows = []
    for scope in scopes:
        mine = counted[key_of(scope)]
        if any(row.statement_id != statement_id for row in mine):
            raise _mixed(scope, statement)
        spent_epsilon, spent_delta = sum(row.spent_epsilon for row in mine), sum(row.spent_delta for row in mine)
        if spent_epsilon > epsilon or spent_delta > delta:
            raise BudgetExceeded(
                f"{scope.describe()}: requested a budget of epsilon={epsilon_value(epsilon):g}, delta={delta_value(delta):g}; "
                f"already spent epsilon={epsilon_value(spent_epsilon):g}, delta={delta_value(spent_delta):g}; grant at least that"
            )
        amounts = {"granted_epsilon": epsilon, "granted_delta": delta, "spent_epsilon": spent_epsilon, "spent_delta": spent_delta}
        rows.append({**scope.parts, "statement_id": statement_id, **amounts})
    insert = budgets.insert().returning(budgets.c.id, *(budgets.c[name] for name in NAMES))
    made = {(row.principal, row.subject, row.bundle): row.id for row in connection.execute(insert, rows)}
    links = [
        {"account_id": row.id, "budget_id": made[key_of(scope)], "statement_id": statement_id}
        for scope in scopes
        for row in counted[key_of(scope)]
    ]
    if links:
        connection.execute(covers.insert(), links)


def _check_size(scope: Scope, epsilon: int, delta: int) -> None:
    if epsilon > LARGEST or delta >= DELTA_UNIT:
        raise InvalidInput(
            f"{scope.describe()}: expected a budget with delta below 1 and epsilon at most {epsilon_value(LARGEST):g}, got "
            f"epsilon={epsilon_value(epsilon):g}, delta={delta_value(delta):g} in total; grant less"
        )


def _mixed(scope: Scope, statement: str) -> IncompatibleGuarantees:
    return IncompatibleGuarantees(
        f"{scope.describe()}: costs compose only within one kind and adjacency; this scope already holds another than "
        f"{describe_statement(statement)}; use another scope"
    )
