"""Postings: what one transaction of the ledger reads and writes, for one scope or for thousands
at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from reticent.core.errors import BudgetExceeded, IncompatibleGuarantees, InvalidInput
from reticent.core.scopes import PARTS, Policy, Scope
from reticent.ledger.anchors import Anchor
from reticent.ledger.chain import Entry, Tip
from reticent.ledger.charges import (
    DELTA_UNIT,
    LARGEST,
    Budget,
    Charge,
    delta_value,
    describe_statement,
    epsilon_value,
)
from reticent.ledger.coverage import AT_ONCE, Cover, Key, accounts_within, budgets_at, key_of
from reticent.ledger.prepared import Prepared
from reticent.ledger.schema import accounts, budgets, covers, entries, statements


@dataclass
class Page:
    """One transaction that appends entries.

    Attributes:
        connection: of the transaction.
        tip: the end of the chain; it moves with every entry, and ``write_tip`` stores it.
        at: time of what is appended, microseconds since 1970, UTC.
    """

    connection: Connection
    tip: Tip
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
    """An entry that charged an account.

    Attributes:
        entry: as it stands in the chain.
        digest: its digest, 32 bytes.
        statement_id, account_id: rows that it belongs to.
    """

    entry: Entry
    digest: bytes
    statement_id: int
    account_id: int


def statement_id_of(connection: Connection, statement: str) -> int:
    """The row of a kind and adjacency, made where it is new."""
    there = connection.execute(
        sa.select(statements.c.id).where(statements.c.statement == statement)
    ).scalar()
    if there is None:
        there = connection.execute(
            statements.insert().values(statement=statement).returning(statements.c.id)
        ).scalar_one()
    return int(there)


def post_charges(
    page: Page, claims: Sequence[Claim], *, statement: str, mechanism: str
) -> tuple[Booking, ...]:
    """Charges accounts and budgets, and appends one entry per claim. Whether the claims fit was
    checked before.

    Args:
        page: where to post.
        claims: of different scopes, each with at least one budget.
        statement: kind and adjacency of all of them.
        mechanism: what causes the costs.
    """
    statement_id = int(claims[0].cover.budgets[0].statement_id)
    account_ids = _open_accounts(page, [claim.cover for claim in claims], statement_id)
    spent: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for claim in claims:
        for row in claim.cover.budgets:
            spent[row.id][0] += claim.charge.epsilon
            spent[row.id][1] += claim.charge.delta
    _change(
        page.connection,
        _CHARGE_BUDGETS,
        ((budget, {"e": e, "d": d}) for budget, (e, d) in spent.items()),
    )
    lines: list[_Line] = []
    for seq, (claim, account_id) in enumerate(
        zip(claims, account_ids, strict=True), page.tip.seq + 1
    ):
        units = (claim.charge.epsilon, claim.charge.delta)
        entry = Entry(
            seq,
            page.at,
            "reserve",
            *key_of(claim.cover.scope),
            statement,
            *units,
            claim.answers,
            mechanism,
            0,
            "",
        )
        lines.append((entry, statement_id, account_id, None))
    paid = (
        (account_id, entry) for (entry, _, _, _), account_id in zip(lines, account_ids, strict=True)
    )
    amounts = (
        (account, {"e": one.epsilon, "d": one.delta, "n": one.answers, "now": page.at})
        for account, one in paid
    )
    _change(page.connection, _CHARGE_ACCOUNTS, amounts)
    digests = _append(page, lines)
    return tuple(
        Booking(entry, digest, statement_id, account_id)
        for (entry, _, _, _), digest, account_id in zip(lines, digests, account_ids, strict=True)
    )


def post_commits(page: Page, bookings: Sequence[Booking], *, receipt: str) -> None:
    """Appends one entry per booking that ties it to ``receipt``; nothing where that was done
    before.

    A commit whose outcome its caller never learned, because the connection broke or a disk was
    full, may so be repeated.

    Raises:
        InvalidInput: a booking is tied to another receipt.
    """
    done = _receipts_of(page.connection, [booking.entry.seq for booking in bookings])
    other = sorted(seq for seq, found in done.items() if found != receipt)
    if other:
        raise InvalidInput(
            f"reservation of entry {other[0]} is committed already to another receipt; reserve "
            "again"
        )
    missing = [booking for booking in bookings if booking.entry.seq not in done]
    if not missing:
        return
    lines: list[_Line] = []
    for seq, booking in enumerate(missing, page.tip.seq + 1):
        paid = booking.entry
        names = (paid.principal, paid.subject, paid.bundle)
        entry = Entry(
            seq, page.at, "commit", *names, paid.statement, 0, 0, 0, "", paid.seq, receipt
        )
        lines.append((entry, booking.statement_id, booking.account_id, None))
    _append(page, lines)
    _change(page.connection, _COUNT_COMMITS, ((booking.account_id, {}) for booking in missing))


def post_policy(page: Page, policy: Policy) -> None:
    """Sets what requests must name from now on."""
    entry = Entry(page.tip.seq + 1, page.at, "policy", "", "", "", "", 0, 0, 0, policy.text, 0, "")
    page.tip = replace(page.tip, policy=policy)
    _append(page, [(entry, None, None, None)])


def post_acceptance(page: Page, lost: Anchor, *, charge: bool) -> tuple[int, int]:
    """Goes on after the loss of all entries up to ``lost``, at a position that none of them had.

    Args:
        page: where to post.
        lost: the furthest that the ledger was seen.
        charge: whether to charge every budget, present and future, what the lost entries spent in
            all; none of them can have lost more. Where this copy has no fewer entries than were
            lost it was written to since, and what both have in common is not known: then all that
            was ever spent up to ``lost`` is charged. A budget that has less left is charged what it
            has, and the rest as soon as it is granted more.

    Returns:
        Micro-epsilon and pico-delta that were charged to each budget at most.
    """
    common = page.tip.spent if page.tip.seq < lost.seq else (0, 0)
    gap = (max(0, lost.epsilon - common[0]), max(0, lost.delta - common[1])) if charge else (0, 0)
    seq = max(page.tip.seq, lost.seq) + 1
    entry = Entry(seq, page.at, "accept", "", "", "", "", *gap, 0, "", 0, lost.text)
    total = tuple(
        min(before + more, LARGEST) for before, more in zip(page.tip.gap, gap, strict=True)
    )
    page.tip = replace(page.tip, gap=(total[0], total[1]))
    _append(page, [(entry, None, None, None)])
    if gap != (0, 0):
        _charge_gaps(page, None)
    return gap


def post_grants(
    page: Page, scopes: Sequence[Scope], *, statement: str, epsilon: int, delta: int
) -> list[Budget]:
    """Adds the same amount to the budget of every scope, and appends one entry for each.

    A new budget starts with what its scope has spent so far, on everything that it covers, and with
    what entries that a restored copy lost may have spent.

    Args:
        page: where to post; its transaction must be undone if this raises.
        scopes: different ones.
        statement: kind and adjacency of the grants.
        epsilon, delta: micro-epsilon and pico-delta for each.

    Returns:
        The budgets as they stand now, in the order of ``scopes``.

    Raises:
        IncompatibleGuarantees, BudgetExceeded, InvalidInput: see ``Ledger.grant``.
    """
    connection = page.connection
    statement_id = statement_id_of(connection, statement)
    standing = budgets_at(connection, scopes)
    new = [scope for scope in scopes if key_of(scope) not in standing]
    for scope in scopes:
        there = standing.get(key_of(scope))
        if there is not None and there.statement_id != statement_id:
            raise _mixed(scope, statement)
        before = (0, 0) if there is None else (there.granted_epsilon, there.granted_delta)
        _check_size(scope, before[0] + epsilon, before[1] + delta)
    _change(
        connection,
        _RAISE_BUDGETS,
        ((row.id, {"e": epsilon, "d": delta}) for row in standing.values()),
    )
    if new:
        _open_budgets(page, new, statement, statement_id, epsilon, delta)
    standing = budgets_at(connection, scopes)
    lines: list[_Line] = []
    for seq, scope in enumerate(scopes, page.tip.seq + 1):
        entry = Entry(
            seq, page.at, "grant", *key_of(scope), statement, epsilon, delta, 0, "", 0, ""
        )
        lines.append((entry, statement_id, None, standing[key_of(scope)].id))
    _append(page, lines)
    if page.tip.gap != (0, 0):
        _charge_gaps(page, [standing[key_of(scope)].id for scope in scopes])
        standing = budgets_at(connection, scopes)
    return [Budget.of_row(standing[key_of(scope)], statement) for scope in scopes]


_Line = tuple[Entry, int | None, int | None, int | None]
"""An entry with the ids of its statement, its account and its budget."""

_APPEND = Prepared(entries.insert(), columns=entries.c.keys())
_RECEIPTS = sa.select(entries.c.reservation, entries.c.receipt).where(
    entries.c.reservation.in_(sa.bindparam("ids", expanding=True))
)
_RECEIPT = Prepared(
    sa.select(entries.c.reservation, entries.c.receipt).where(
        entries.c.reservation == sa.bindparam("one")
    )
)


class _Change:
    """An update of many rows by the same amounts, or of one."""

    def __init__(self, table: sa.Table, **values: Any) -> None:
        update = table.update().values(**values)
        self.many = update.where(table.c.id.in_(sa.bindparam("ids", expanding=True)))
        self.one = Prepared(update.where(table.c.id == sa.bindparam("number")))


_SPEND = {
    "spent_epsilon": budgets.c.spent_epsilon + sa.bindparam("e"),
    "spent_delta": budgets.c.spent_delta + sa.bindparam("d"),
}
_CHARGE_BUDGETS = _Change(budgets, **_SPEND)
_CHARGE_GAPS = _Change(
    budgets,
    **_SPEND,
    gap_epsilon=budgets.c.gap_epsilon + sa.bindparam("e"),
    gap_delta=budgets.c.gap_delta + sa.bindparam("d"),
)
_RAISE_BUDGETS = _Change(
    budgets,
    granted_epsilon=budgets.c.granted_epsilon + sa.bindparam("e"),
    granted_delta=budgets.c.granted_delta + sa.bindparam("d"),
)
_CHARGE_ACCOUNTS = _Change(
    accounts,
    spent_epsilon=accounts.c.spent_epsilon + sa.bindparam("e"),
    spent_delta=accounts.c.spent_delta + sa.bindparam("d"),
    answers=accounts.c.answers + sa.bindparam("n"),
    reservations=accounts.c.reservations + 1,
    last_at=sa.bindparam("now"),
)
_COUNT_COMMITS = _Change(accounts, commits=accounts.c.commits + 1)


def _receipts_of(connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
    """The receipts of those of these entries that are committed."""
    if len(numbers) == 1:
        rows = _RECEIPT.rows(connection, {"one": numbers[0]})
    else:
        rows = [
            row
            for start in range(0, len(numbers), AT_ONCE)
            for row in connection.execute(_RECEIPTS, {"ids": numbers[start : start + AT_ONCE]})
        ]
    return {row.reservation: row.receipt for row in rows}


def _change(
    connection: Connection, update: _Change, amounts: Iterable[tuple[int, dict[str, int]]]
) -> None:
    """One statement for all rows that change by the same amounts: people mostly have one row, or
    two, or three.
    """
    alike: defaultdict[tuple[tuple[str, int], ...], list[int]] = defaultdict(list)
    for number, change in amounts:
        alike[tuple(change.items())].append(number)
    for change_items, ids in alike.items():
        amount = dict(change_items)
        if len(ids) == 1:
            update.one.run(connection, {**amount, "number": ids[0]})
            continue
        for start in range(0, len(ids), AT_ONCE):
            connection.execute(update.many, {**amount, "ids": ids[start : start + AT_ONCE]})


def _append(page: Page, lines: Sequence[_Line]) -> list[bytes]:
    """Writes entries, moves the page's tip behind them, and returns their digests."""
    tip, digest, rows, digests = page.tip, page.tip.digest, [], []
    spent_epsilon, spent_delta = tip.spent
    for entry, statement_id, account_id, budget_id in lines:
        digest = entry.digest(digest)
        digests.append(digest)
        if entry.action == "reserve":
            spent_epsilon, spent_delta = (
                min(spent_epsilon + entry.epsilon, LARGEST),
                min(spent_delta + entry.delta, LARGEST),
            )
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
    _APPEND.run_each(page.connection, rows)
    page.tip = replace(tip, seq=lines[-1][0].seq, digest=digest, spent=(spent_epsilon, spent_delta))
    return digests


def _charge_gaps(page: Page, ids: Sequence[int] | None) -> None:
    """Charges budgets what they have not yet paid of the ledger's gap, as far as they can; all
    budgets where ``ids`` is None.
    """
    query = sa.select(budgets, statements.c.statement).join(
        statements, statements.c.id == budgets.c.statement_id
    )
    query = query.order_by(budgets.c.id)
    chunks = (
        [None]
        if ids is None
        else [ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE)]
    )
    rows = [
        row
        for chunk in chunks
        for row in page.connection.execute(
            query if chunk is None else query.where(budgets.c.id.in_(chunk))
        )
    ]
    charges: list[tuple[int, dict[str, int]]] = []
    lines: list[_Line] = []
    for row in rows:
        epsilon = min(page.tip.gap[0] - row.gap_epsilon, row.granted_epsilon - row.spent_epsilon)
        delta = min(page.tip.gap[1] - row.gap_delta, row.granted_delta - row.spent_delta)
        if (epsilon, delta) != (0, 0):
            names = (row.principal, row.subject, row.bundle)
            seq = page.tip.seq + 1 + len(lines)
            entry = Entry(seq, page.at, "gap", *names, row.statement, epsilon, delta, 0, "", 0, "")
            lines.append((entry, row.statement_id, None, row.id))
            charges.append((row.id, {"e": epsilon, "d": delta}))
    if lines:
        _change(page.connection, _CHARGE_GAPS, charges)
        _append(page, lines)


_ENTRY_COLUMNS = ("seq", "at", "action", "epsilon", "delta", "answers", "mechanism", "receipt")


def _open_accounts(page: Page, wanted: Sequence[Cover], statement_id: int) -> list[int]:
    """The account of every cover, made where it is new."""
    new = {key_of(cover.scope): cover for cover in wanted if cover.account_id is None}
    made: dict[Key, int] = {}
    if new:
        zeros = dict.fromkeys(
            ("spent_epsilon", "spent_delta", "answers", "reservations", "commits"), 0
        )
        rest = {**zeros, "statement_id": statement_id, "last_at": page.at}
        insert = accounts.insert().returning(accounts.c.id, *(accounts.c[name] for name in PARTS))
        for row in page.connection.execute(
            insert, [{**cover.scope.parts, **rest} for cover in new.values()]
        ):
            made[row.principal, row.subject, row.bundle] = row.id
        links = [
            {"account_id": made[key], "budget_id": row.id, "statement_id": statement_id}
            for key, cover in new.items()
            for row in cover.budgets
        ]
        page.connection.execute(covers.insert(), links)
    return [
        made[key_of(cover.scope)] if cover.account_id is None else cover.account_id
        for cover in wanted
    ]


def _open_budgets(
    page: Page, scopes: Sequence[Scope], statement: str, statement_id: int, epsilon: int, delta: int
) -> None:
    connection = page.connection
    counted = accounts_within(connection, scopes)
    rows = []
    for scope in scopes:
        mine = counted[key_of(scope)]
        if any(row.statement_id != statement_id for row in mine):
            raise _mixed(scope, statement)
        spent_epsilon, spent_delta = (
            sum(row.spent_epsilon for row in mine),
            sum(row.spent_delta for row in mine),
        )
        lost_epsilon, lost_delta = page.tip.gap
        if spent_epsilon + lost_epsilon > epsilon or spent_delta + lost_delta > delta:
            raise BudgetExceeded(
                f"{scope.describe()}: requested a budget of "
                f"epsilon={epsilon_value(epsilon):g}, delta={delta_value(delta):g}; "
                f"already spent epsilon={epsilon_value(spent_epsilon + lost_epsilon):g}, "
                f"delta={delta_value(spent_delta + lost_delta):g}; grant at least that"
            )
        amounts = {
            "granted_epsilon": epsilon,
            "granted_delta": delta,
            "spent_epsilon": spent_epsilon,
            "spent_delta": spent_delta,
        }
        rows.append({**scope.parts, "statement_id": statement_id, **amounts})
    insert = budgets.insert().returning(budgets.c.id, *(budgets.c[name] for name in PARTS))
    made = {
        (row.principal, row.subject, row.bundle): row.id for row in connection.execute(insert, rows)
    }
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
            f"{scope.describe()}: expected a budget with delta below 1 and epsilon at most "
            f"{epsilon_value(LARGEST):g}, got "
            f"epsilon={epsilon_value(epsilon):g}, delta={delta_value(delta):g} in total; grant less"
        )


def _mixed(scope: Scope, statement: str) -> IncompatibleGuarantees:
    return IncompatibleGuarantees(
        f"{scope.describe()}: costs compose only within one kind and adjacency; this scope "
        "already holds another than "
        f"{describe_statement(statement)}; use another scope"
    )
