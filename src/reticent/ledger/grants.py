"""Grants, and what else an operator posts: policies, and the acceptance of a restored copy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

import sqlalchemy as sa

from reticent.core.errors import (
    BudgetExceeded,
    IncompatibleGuarantees,
    InvalidInput,
    UnknownName,
)
from reticent.core.scopes import PARTS, Policy, Scope
from reticent.ledger.chain import LOWERED, Anchor, Entry, Line, Page, append
from reticent.ledger.charges import (
    DELTA_UNIT,
    LARGEST,
    Budget,
    delta_value,
    describe_statement,
    epsilon_value,
)
from reticent.ledger.charging import Key, key_of, rows_at
from reticent.ledger.schema import accounts, budgets, statements
from reticent.ledger.statements import Change, Session, batches, within
from reticent.ledger.tree import ACCOUNTS, BUDGETS, changed


def post_policy(page: Page, policy: Policy) -> None:
    """Set what requests must name from now on."""
    entry = Entry(page.tip.seq + 1, page.at, "policy", "", "", "", "", 0, 0, 0, policy.text, 0, "")
    page.tip = page.tip._replace(policy=policy)
    append(page, [Line(entry)])


def post_acceptance(page: Page, lost: Anchor, *, charge: bool) -> tuple[int, int]:
    """Go on after the loss of all entries up to ``lost``, at a position that none of them had.

    Args:
        page: page of the transaction to post in.
        lost: the furthest position that the ledger was seen at.
        charge: whether to charge every budget, present and future, what the lost entries spent in
            all. None of them can have lost more. A copy that has no fewer entries than were
            lost was written to since, and what both have in common is not known. Then all that
            was ever spent up to ``lost`` is charged. A budget that has less left is charged what it
            has, and the rest as soon as it is granted more.

    Returns:
        Micro-epsilon and pico-delta that were charged to each budget at most.
    """
    common = page.tip.paid if page.tip.seq < lost.seq else (0, 0)
    gap = (max(0, lost.epsilon - common[0]), max(0, lost.delta - common[1])) if charge else (0, 0)
    seq = max(page.tip.seq, lost.seq) + 1
    entry = Entry(seq, page.at, "accept", "", "", "", "", *gap, 0, "", 0, lost.text)
    total = tuple(
        min(before + more, LARGEST) for before, more in zip(page.tip.gap, gap, strict=True)
    )
    page.tip = page.tip._replace(gap=(total[0], total[1]))
    append(page, [Line(entry)])
    if gap != (0, 0):
        _charge_gaps(page, _every_budget(page))
    return gap


def post_grants(
    page: Page, scopes: Sequence[Scope], *, statement: str, epsilon: int, delta: int
) -> list[Budget]:
    """Add the same amount to the budget of every scope, and append one entry for each.

    A new budget starts with what its scope has spent so far, on everything that it covers, and with
    what entries that a restored copy lost may have spent.

    Args:
        page: page of the transaction to post in, which must be undone if this raises.
        scopes: different scopes.
        statement: kind and adjacency of the grants.
        epsilon, delta: micro-epsilon and pico-delta for each.

    Returns:
        The budgets as they stand now, in the order of ``scopes``.

    Raises:
        IncompatibleGuarantees, BudgetExceeded, InvalidInput: the errors of ``Ledger.grant``.
    """
    statement_id = _statement_id(page.connection, statement)
    keys = [key_of(scope) for scope in scopes]
    standing = {key: row._asdict() for key, row in rows_at(page, BUDGETS, keys).items()}
    for key, scope in zip(keys, scopes, strict=True):
        there = standing.get(key)
        if there is not None and there["statement"] != statement:
            raise _mixed(scope, statement)
        before = (0, 0) if there is None else (there["granted_epsilon"], there["granted_delta"])
        _check_size(scope, before[0] + epsilon, before[1] + delta)
    _RAISE_BUDGETS.run(
        page.connection, ((row["id"], (epsilon, delta)) for row in standing.values())
    )
    for row in standing.values():
        row["granted_epsilon"] += epsilon
        row["granted_delta"] += delta
    new = [scope for key, scope in zip(keys, scopes, strict=True) if key not in standing]
    if new:
        standing |= _open_budgets(page, new, statement, statement_id, epsilon, delta)
    page.tree.put(_items(standing.values()))
    lines = []
    for seq, key in enumerate(keys, page.tip.seq + 1):
        entry = Entry(seq, page.at, "grant", *key, statement, epsilon, delta, 0, "", 0, "")
        lines.append(Line(entry, statement_id, budget_id=standing[key]["id"]))
    append(page, lines)
    if page.tip.gap != (0, 0):
        _charge_gaps(page, list(standing.values()))
    return [Budget.of_values(standing[key]) for key in keys]


def post_lowering(page: Page, scope: Scope, part: tuple[int, int] | None) -> Budget:
    """Take back what is left of a budget, or a part of it, and append one entry.

    Args:
        page: page of the transaction to post in.
        scope: scope of the budget.
        part: micro-epsilon and pico-delta to take at most, or None for all that is left.

    Returns:
        The budget as it stands now.

    Raises:
        UnknownName: no budget has this scope.
        CorruptLedger: the budget was changed by other means.
    """
    key = key_of(scope)
    found = rows_at(page, BUDGETS, [key]).get(key)
    if found is None:
        raise UnknownName(
            f"{scope.describe()}: has no budget; expected the scope of one, as `reticent ledger "
            "report` shows it"
        )
    row = found._asdict()
    left = [row[f"granted_{name}"] - row[f"spent_{name}"] for name in ("epsilon", "delta")]
    taken = [min(wanted, most) for wanted, most in zip(part or left, left, strict=True)]
    _RAISE_BUDGETS.run(page.connection, [(row["id"], (-taken[0], -taken[1]))])
    row["granted_epsilon"] -= taken[0]
    row["granted_delta"] -= taken[1]
    page.tree.put(_items([row]))
    seq, statement = page.tip.seq + 1, row["statement"]
    entry = Entry(seq, page.at, "grant", *key, statement, taken[0], taken[1], 0, LOWERED, 0, "")
    append(page, [Line(entry, row["statement_id"], budget_id=row["id"])])
    return Budget.of_values(row)


def _items(rows: Iterable[Mapping[str, Any]]) -> dict[bytes, bytes]:
    """Return items of the tree for rows of budgets."""
    return {BUDGETS.key_of(row): BUDGETS.digest(row) for row in rows}


def _statement_id(connection: Session, statement: str) -> int:
    """Return the row of a kind and adjacency, made where it is new."""
    there = connection.execute(
        sa.select(statements.c.id).where(statements.c.statement == statement)
    ).scalar()
    if there is None:
        there = connection.execute(
            statements.insert().values(statement=statement).returning(statements.c.id)
        ).scalar_one()
    return int(there)


def _accounts_within(page: Page, scopes: Sequence[Scope]) -> dict[Key, list[Any]]:
    """Return the accounts that a budget of each scope covers.

    Raises:
        CorruptLedger: one was changed by other means, or the accounts together have not spent what
            the entries did.
    """
    connection = page.connection
    sums = sa.select(sa.func.sum(accounts.c.spent_epsilon), sa.func.sum(accounts.c.spent_delta))
    spent = tuple(min(int(total or 0), LARGEST) for total in connection.execute(sums).one())
    if spent != page.tip.spent:
        raise changed(ACCOUNTS)
    by_names: defaultdict[tuple[str, ...], list[Key]] = defaultdict(list)
    found: dict[Key, list[Any]] = {}
    for key in map(key_of, scopes):
        by_names[tuple(compress(PARTS, key))].append(key)
        found[key] = []
    for names, keys in by_names.items():
        for fixed, free, values in batches(
            connection, [tuple(filter(None, key)) for key in keys], names
        ):
            for row in connection.execute(
                _ACCOUNTS.where(*within(connection, accounts, fixed, free, values))
            ):
                principal, subject, bundle = (
                    getattr(row, name) if name in names else "" for name in PARTS
                )
                found[principal, subject, bundle].append(row)
    each = {ACCOUNTS.key_of(row._mapping): row for rows in found.values() for row in rows}
    known = page.tree.find(each)
    if any(known.get(key) != ACCOUNTS.digest(row._mapping) for key, row in each.items()):
        raise changed(ACCOUNTS)
    return found


_ACCOUNTS = sa.select(accounts, statements.c.statement).join(
    statements, statements.c.id == accounts.c.statement_id
)


def _charge_gaps(page: Page, rows: Sequence[dict[str, Any]]) -> None:
    """Charge budgets what they have not yet paid of the ledger's gap, as far as they can.

    Args:
        page: page of the transaction to post in.
        rows: rows of budgets as they stand, which are brought up to date.
    """
    charges: list[tuple[int, tuple[int, ...]]] = []
    lines: list[Line] = []
    for row in rows:
        left = (
            row["granted_epsilon"] - row["spent_epsilon"],
            row["granted_delta"] - row["spent_delta"],
        )
        epsilon = min(page.tip.gap[0] - row["gap_epsilon"], left[0])
        delta = min(page.tip.gap[1] - row["gap_delta"], left[1])
        if (epsilon, delta) == (0, 0):
            continue
        for kind in ("spent", "gap"):
            row[f"{kind}_epsilon"] += epsilon
            row[f"{kind}_delta"] += delta
        seq = page.tip.seq + 1 + len(lines)
        names = (row["principal"], row["subject"], row["bundle"])
        entry = Entry(seq, page.at, "gap", *names, row["statement"], epsilon, delta, 0, "", 0, "")
        lines.append(Line(entry, row["statement_id"], budget_id=row["id"]))
        charges.append((row["id"], (epsilon, delta, epsilon, delta)))
    if lines:
        _CHARGE_GAPS.run(page.connection, charges)
        page.tree.put(_items(rows))
        append(page, lines)


def _every_budget(page: Page) -> list[dict[str, Any]]:
    """Return all budgets, by id, as the chain knows them."""
    query = sa.select(budgets, statements.c.statement).join(
        statements, statements.c.id == budgets.c.statement_id
    )
    rows = [row._asdict() for row in page.connection.execute(query.order_by(budgets.c.id))]
    items = _items(rows)
    if page.tree.find(items) != items:
        raise changed(BUDGETS)
    return rows


def _open_budgets(
    page: Page, scopes: Sequence[Scope], statement: str, statement_id: int, epsilon: int, delta: int
) -> dict[Key, dict[str, Any]]:
    """Make a budget for each of these scopes, and return their rows."""
    counted = _accounts_within(page, scopes)
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
            "gap_epsilon": 0,
            "gap_delta": 0,
        }
        rows.append({**scope.parts, "statement_id": statement_id, **amounts})
    insert = budgets.insert().returning(*budgets.c)
    return {
        (row.principal, row.subject, row.bundle): {**row._mapping, "statement": statement}
        for row in page.connection.execute(insert, rows)
    }


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


def _added(*columns: str) -> Change:
    return Change(budgets, ", ".join(f"{name} = {name} + ?" for name in columns))


_RAISE_BUDGETS = _added("granted_epsilon", "granted_delta")
_CHARGE_GAPS = _added("spent_epsilon", "spent_delta", "gap_epsilon", "gap_delta")
