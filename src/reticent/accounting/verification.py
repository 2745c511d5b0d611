"""Verification: recomputes the hash chain and every total from the entries alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from reticent.accounting.chain import Entry, genesis
from reticent.accounting.schema import accounts, budgets, covers, entries, head, statements
from reticent.accounting.scopes import Scope
from reticent.accounting.store import Store
from reticent.accounting.units import delta_value, epsilon_value
from reticent.core.errors import InvalidInput, LedgerUnavailable

_MOST_PROBLEMS = 50
_ROWS_AT_ONCE = 10_000


class StoredEntry(NamedTuple):
    """An entry with the digest that is stored beside it, and the rows that it belongs to."""

    entry: Entry
    digest: bytes
    account_id: int | None
    budget_id: int | None


@dataclass(frozen=True)
class Verification:
    """What ``verify`` found.

    Attributes:
        entries: number of entries read.
        anchor: "position:digest" of the last entry. Kept elsewhere, it proves later that nothing up to here was rewritten.
        problems: what is wrong, in plain words; empty when all is well. At most 50 are listed.
    """

    entries: int
    anchor: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass
class _Sums:
    epsilon: int = 0
    delta: int = 0
    answers: int = 0
    reservations: int = 0
    commits: int = 0

    def __str__(self) -> str:
        return (
            f"epsilon={epsilon_value(self.epsilon)}, delta={delta_value(self.delta)}, {self.answers} answer(s) in "
            f"{self.reservations} call(s), {self.commits} of them committed"
        )


@dataclass
class _Walk:
    """State of one pass over the entries."""

    problems: list[str] = field(default_factory=list)
    spent: defaultdict[int, _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    granted: defaultdict[int, _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    account_of: dict[int, int] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)

    def report(self, problem: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)


def verify(store: Store, *, anchor: str | None = None) -> Verification:
    """Recomputes the chain, every account, every budget and every cover, in one snapshot.

    A changed, dropped or reordered entry, a total that is not the sum of its entries, and a budget that misses an account are
    each named. Somebody who can rewrite the whole database can also rewrite the chain; an ``anchor`` noted elsewhere catches
    that, and the return of an old copy.

    Args:
        store: the ledger's database.
        anchor: the anchor of an earlier verification or report, or None.

    Raises:
        InvalidInput: ``anchor`` is not "position:digest".
        LedgerUnavailable: cannot be read.
    """
    anchor_seq, anchor_digest = _parse_anchor(anchor)
    walk = _Walk()
    with store.read() as connection:
        top = connection.execute(sa.select(head)).first()
        if top is None:
            raise LedgerUnavailable(f"{store.name}: no ledger here; create one with `reticent ledger init`")
        digest, seq, read = genesis(top.ledger), 0, 0
        if anchor_seq == 0 and digest != anchor_digest:
            walk.report("the anchor is of another ledger")
        for stored in stored_entries(connection):
            _check_link(walk, stored, seq, digest)
            _add_up(walk, stored)
            seq, digest, read = stored.entry.seq, stored.digest, read + 1
            if seq == anchor_seq and digest != anchor_digest:
                walk.report(f"entry {seq} is not the one that the anchor names; entries up to it were rewritten")
        if (top.seq, bytes(top.digest)) != (seq, digest):
            walk.report(
                f"the ledger's head names entry {top.seq}, the last entry is {seq}; entries were dropped or the head was changed"
            )
        if anchor_seq is not None and anchor_seq > seq:
            walk.report(
                f"the anchor names entry {anchor_seq}, the last entry is {seq}; entries were dropped or an old copy was put back"
            )
        _check_budgets(walk, connection, _check_accounts(walk, connection))
    return Verification(read, f"{top.seq}:{bytes(top.digest).hex()}", tuple(walk.problems))


def stored_entries(connection: Connection) -> Iterator[StoredEntry]:
    """Every entry in the order of the chain, a few thousand in memory at a time."""
    scope = [sa.func.coalesce(accounts.c[name], budgets.c[name]) for name in ("principal", "subject", "bundle")]
    mine = entries.c
    query = (
        sa.select(
            *(mine.seq, mine.at, mine.action, *scope, statements.c.statement, mine.epsilon, mine.delta, mine.answers),
            *(mine.mechanism, sa.func.coalesce(mine.reservation, 0), mine.receipt, mine.digest, mine.account_id, mine.budget_id),
        )
        .outerjoin(statements, statements.c.id == mine.statement_id)
        .outerjoin(accounts, accounts.c.id == mine.account_id)
        .outerjoin(budgets, budgets.c.id == mine.budget_id)
        .order_by(mine.seq)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    for *fields, digest, account_id, budget_id in connection.execute(query):
        yield StoredEntry(Entry(*fields), bytes(digest), account_id, budget_id)


def _check_link(walk: _Walk, stored: StoredEntry, before: int, digest: bytes) -> None:
    seq = stored.entry.seq
    if seq != before + 1:
        gap = f"entry {before + 1} is" if seq == before + 2 else f"entries {before + 1} to {seq - 1} are"
        walk.report(f"{gap} missing")
    elif stored.entry.digest(digest) != stored.digest:
        walk.report(f"entry {seq} does not match its digest: it, or its place in the order, was changed")


def _add_up(walk: _Walk, stored: StoredEntry) -> None:
    entry, account = stored.entry, stored.account_id
    if entry.action == "grant" and stored.budget_id is not None:
        walk.granted[stored.budget_id].epsilon += entry.epsilon
        walk.granted[stored.budget_id].delta += entry.delta
    elif entry.action == "reserve" and account is not None:
        sums = walk.spent[account]
        sums.epsilon += entry.epsilon
        sums.delta += entry.delta
        sums.answers += entry.answers
        sums.reservations += 1
        walk.account_of[entry.seq] = account
    elif entry.action == "commit" and account is not None:
        walk.spent[account].commits += 1
        if walk.account_of.get(entry.reservation) != account or entry.reservation in walk.committed:
            walk.report(f"entry {entry.seq} commits entry {entry.reservation}, which is no open reservation of its account")
        walk.committed.add(entry.reservation)
    else:
        walk.report(f"entry {entry.seq} has no account or budget")


def _check_accounts(walk: _Walk, connection: Connection) -> dict[int, tuple[Scope, int]]:
    """Every account's scope and statement, once its totals are compared with its entries."""
    found: dict[int, tuple[Scope, int]] = {}
    for row in connection.execute(sa.select(accounts)):
        scope = Scope(row.principal, row.subject, row.bundle)
        found[row.id] = (scope, row.statement_id)
        stored, sums = _Sums(row.spent_epsilon, row.spent_delta, row.answers, row.reservations, row.commits), walk.spent[row.id]
        if stored != sums:
            walk.report(f"account {scope.describe()} says {stored}; its entries say {sums}")
    for account in walk.spent.keys() - found.keys():
        walk.report(f"entries of account {account} have no account")
    return found


def _check_budgets(walk: _Walk, connection: Connection, all_accounts: dict[int, tuple[Scope, int]]) -> None:
    """Compares every budget with the accounts that it has to count, its grants and what they spent."""
    links: defaultdict[int, set[int]] = defaultdict(set)
    for link in connection.execute(sa.select(covers)):
        links[link.budget_id].add(link.account_id)
    rows = connection.execute(sa.select(budgets)).all()
    indexes: dict[tuple[bool, ...], defaultdict[tuple[str, ...], set[int]]] = {}
    for row in rows:
        scope = Scope(row.principal, row.subject, row.bundle)
        covered = _covered(indexes, scope, all_accounts)
        if covered != links[row.id]:
            walk.report(f"budget {scope.describe()} counts {len(links[row.id])} accounts, expected {len(covered)}")
        if any(all_accounts[account][1] != row.statement_id for account in covered):
            walk.report(f"budget {scope.describe()} counts an account of another kind or adjacency")
        granted = walk.granted[row.id]
        spent = (sum(walk.spent[account].epsilon for account in covered), sum(walk.spent[account].delta for account in covered))
        if (row.granted_epsilon, row.granted_delta) != (granted.epsilon, granted.delta):
            walk.report(f"budget {scope.describe()} grants another amount than its entries")
        if (row.spent_epsilon, row.spent_delta) != spent:
            walk.report(f"budget {scope.describe()} has spent another amount than its entries")
        if spent[0] > granted.epsilon or spent[1] > granted.delta:
            walk.report(f"budget {scope.describe()} is overspent")
    for budget in walk.granted.keys() - {row.id for row in rows}:
        walk.report(f"grants of budget {budget} have no budget")


def _covered(
    indexes: dict[tuple[bool, ...], defaultdict[tuple[str, ...], set[int]]],
    budget: Scope,
    all_accounts: dict[int, tuple[Scope, int]],
) -> set[int]:
    """Accounts that ``budget`` covers, from one index per set of names that budgets give; there are seven such sets at most."""
    given = tuple(bool(value) for value in budget.parts.values())
    if given not in indexes:
        index: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
        for account, (scope, _) in all_accounts.items():
            index[tuple(compress(scope.parts.values(), given))].add(account)
        indexes[given] = index
    return indexes[given][tuple(compress(budget.parts.values(), given))]


def _parse_anchor(anchor: str | None) -> tuple[int | None, bytes]:
    if anchor is None:
        return None, b""
    try:
        seq, digest = anchor.split(":")
        return int(seq), bytes.fromhex(digest)
    except ValueError:
        raise InvalidInput(f"anchor={anchor!r:.80}: expected 'position:digest' as printed by report or verify") from None
