"""Grants, and what else an operator posts: policies, and the acceptance of a restored copy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from reticent.core.errors import BudgetExceeded, IncompatibleGuarantees, InvalidInput
from reticent.core.scopes import PARTS, Policy, Scope
from reticent.ledger.chain import Anchor, Entry, Line, Page, append
from reticent.ledger.charges import (
    DELTA_UNIT,
    LARGEST,
    Budget,
    delta_value,
    describe_statement,
    epsilon_value,
)
from reticent.ledger.charging import Key, key_of
from reticent.ledger.schema import (
    AT_ONCE,
    Change,
    accounts,
    batches,
    budgets,
    covers,
    statements,
    within,
)


def post_policy(page: Page, policy: Policy) -> None:
    """Sets what requests must name from now on."""
    entry = Entry(page.tip.seq + 1, page.at, "policy", "", "", "", "", 0, 0, 0, policy.text, 0, "")
    page.tip = replace(page.tip, policy=policy)
    append(page, [Line(entry)])


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
    append(page, [Line(entry)])
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
    statement_id = _statement_id(connection, statement)
    standing = _budgets_at(connection, scopes)
    new = [scope for scope in scopes if key_of(scope) not in standing]
    for scope in scopes:
        there = standing.get(key_of(scope))
        if there is not None and there.statement_id != statement_id:
            raise _mixed(scope, statement)
        before = (0, 0) if there is None else (there.granted_epsilon, there.granted_delta)
        _check_size(scope, before[0] + epsilon, before[1] + delta)
    _RAISE_BUDGETS.run(
        connection, ((row.id, {"e": epsilon, "d": delta}) for row in standing.values())
    )
    if new:
        _open_budgets(page, new, statement, statement_id, epsilon, delta)
    standing = _budgets_at(connection, scopes)
    lines = []
    for seq, scope in enumerate(scopes, page.tip.seq + 1):
        entry = Entry(
            seq, page.at, "grant", *key_of(scope), statement, epsilon, delta, 0, "", 0, ""
        )
        lines.append(Line(entry, statement_id, budget_id=standing[key_of(scope)].id))
    append(page, lines)
    if page.tip.gap != (0, 0):
        _charge_gaps(page, [standing[key_of(scope)].id for scope in scopes])
        standing = _budgets_at(connection, scopes)
    return [Budget.of_row(standing[key_of(scope)], statement) for scope in scopes]


def _statement_id(connection: Connection, statement: str) -> int:
    """The row of a kind and adjacency, made where it is new."""
    there = connection.execute(
        sa.select(statements.c.id).where(statements.c.statement == statement)
    ).scalar()
    if there is None:
        there = connection.execute(
            statements.insert().values(statement=statement).returning(statements.c.id)
        ).scalar_one()
    return int(there)


def _budgets_at(connection: Connection, scopes: Sequence[Scope]) -> dict[Key, Row[Any]]:
    """The budgets of exactly these scopes, where there are any."""
    found: dict[Key, Row[Any]] = {}
    for fixed, free, values in batches(connection, [key_of(scope) for scope in scopes], PARTS):
        for row in connection.execute(
            sa.select(budgets).where(*within(connection, budgets, fixed, free, values))
        ):
            found[row.principal, row.subject, row.bundle] = row
    return found


def _accounts_within(connection: Connection, scopes: Sequence[Scope]) -> dict[Key, list[Row[Any]]]:
    """The accounts that a budget of each scope covers."""
    by_names: defaultdict[tuple[str, ...], list[Key]] = defaultdict(list)
    found: dict[Key, list[Row[Any]]] = {}
    for key in map(key_of, scopes):
        by_names[tuple(compress(PARTS, key))].append(key)
        found[key] = []
    for names, keys in by_names.items():
        for fixed, free, values in batches(
            connection, [tuple(filter(None, key)) for key in keys], names
        ):
            for row in connection.execute(
                sa.select(accounts).where(*within(connection, accounts, fixed, free, values))
            ):
                principal, subject, bundle = (
                    getattr(row, name) if name in names else "" for name in PARTS
                )
                found[principal, subject, bundle].append(row)
    return found


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
    lines: list[Line] = []
    for row in rows:
        epsilon = min(page.tip.gap[0] - row.gap_epsilon, row.granted_epsilon - row.spent_epsilon)
        delta = min(page.tip.gap[1] - row.gap_delta, row.granted_delta - row.spent_delta)
        if (epsilon, delta) != (0, 0):
            names = (row.principal, row.subject, row.bundle)
            seq = page.tip.seq + 1 + len(lines)
            entry = Entry(seq, page.at, "gap", *names, row.statement, epsilon, delta, 0, "", 0, "")
            lines.append(Line(entry, row.statement_id, budget_id=row.id))
            charges.append((row.id, {"e": epsilon, "d": delta}))
    if lines:
        _CHARGE_GAPS.run(page.connection, charges)
        append(page, lines)


def _open_budgets(
    page: Page, scopes: Sequence[Scope], statement: str, statement_id: int, epsilon: int, delta: int
) -> None:
    connection = page.connection
    counted = _accounts_within(connection, scopes)
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


_RAISE_BUDGETS = Change(
    budgets,
    granted_epsilon=budgets.c.granted_epsilon + sa.bindparam("e"),
    granted_delta=budgets.c.granted_delta + sa.bindparam("d"),
)
_CHARGE_GAPS = Change(
    budgets,
    **{
        name: budgets.c[name] + sa.bindparam(amount)
        for name, amount in (
            ("spent_epsilon", "e"),
            ("spent_delta", "d"),
            ("gap_epsilon", "e"),
            ("gap_delta", "d"),
        )
    },
)
