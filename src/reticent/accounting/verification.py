"""Verification: recomputes the hash chain and every total from the entries alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from reticent.accounting.chain import Entry, genesis
from reticent.accounting.schema import accounts, budgets, covers, entries, head, statements
from reticent.accounting.scopes import Scope
from reticent.accounting.store import Store
from reticent.core.errors import InvalidInput, LedgerUnavailable

_MOST_PROBLEMS = 50
_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True)
class StoredEntry:
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
        _check_totals(walk, connection)
    return Verification(read, f"{top.seq}:{bytes(top.digest).hex()}", tuple(walk.problems))


def stored_entries(connection: Connection) -> Iterator[StoredEntry]:
    """Every entry in the order of the chain, a few thousand in memory at a time."""
    names = ("principal", "subject", "bundle")
    scope = (sa.func.coalesce(accounts.c[name], budgets.c[name]).label(name) for name in names)
    query = (
        sa.select(entries, statements.c.statement, *scope)
        .outerjoin(statements, statements.c.id == entries.c.statement_id)
        .outerjoin(accounts, accounts.c.id == entries.c.account_id)
        .outerjoin(budgets, budgets.c.id == entries.c.budget_id)
        .order_by(entries.c.seq)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    for row in connection.execute(query):
        entry = Entry(
            *(
                row.seq,
                row.at,
                row.action,
                row.principal,
                row.subject,
                row.bundle,
                row.statement,
                row.epsilon,
                row.delta,
                row.answers,
            ),
            *(row.mechanism, row.reservation or 0, row.receipt),
        )
        yield StoredEntry(entry, bytes(row.digest), row.account_id, row.budget_id)


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


def _check_totals(walk: _Walk, connection: Connection) -> None:
    statement_of_account: dict[int, tuple[Scope, int]] = {}
    for row in connection.execute(sa.select(accounts)):
        scope = Scope(row.principal, row.subject, row.bundle)
        statement_of_account[row.id] = (scope, row.statement_id)
        sums = walk.spent[row.id]
        found = _Sums(row.spent_epsilon, row.spent_delta, row.answers, row.reservations, row.commits)
        if found != sums:
            walk.report(f"account {scope.describe()} says {found}, its entries say {sums}")
    for account in walk.spent.keys() - statement_of_account.keys():
        walk.report(f"entries of account {account} have no account")
    links: defaultdict[int, set[int]] = defaultdict(set)
    for link in connection.execute(sa.select(covers)):
        links[link.budget_id].add(link.account_id)
    rows = connection.execute(sa.select(budgets)).all()
    for row in rows:
        scope = Scope(row.principal, row.subject, row.bundle)
        covered = {account for account, (other, _) in statement_of_account.items() if scope.covers(other)}
        if covered != links[row.id]:
            walk.report(f"budget {scope.describe()} counts {len(links[row.id])} accounts, expected {len(covered)}")
        if any(statement_of_account[account][1] != row.statement_id for account in covered):
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


def _parse_anchor(anchor: str | None) -> tuple[int | None, bytes]:
    if anchor is None:
        return None, b""
    try:
        seq, digest = anchor.split(":")
        return int(seq), bytes.fromhex(digest)
    except ValueError:
        raise InvalidInput(f"anchor={anchor!r:.80}: expected 'position:digest' as printed by report or verify") from None
