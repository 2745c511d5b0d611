"""Verification: recompute the hash chain and every total from the entries alone.

The results are compared with what is kept elsewhere: the anchor, and clients' receipts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, pairwise
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.engine import Row

from reticent.core.errors import CorruptLedger, InvalidInput, LedgerUnavailable
from reticent.core.releases import Receipt
from reticent.core.scopes import PARTS, Scope
from reticent.ledger.chain import LOWERED, Anchor, Entry, read_tip
from reticent.ledger.charges import LARGEST, delta_value, epsilon_value
from reticent.ledger.schema import (
    accounts,
    api_keys,
    budgets,
    entries,
    plan_counts,
    schema_problems,
    service_answers,
    statements,
)
from reticent.ledger.statements import Session, raw
from reticent.ledger.store import Store, fault_of
from reticent.ledger.tree import ACCOUNTS, ANSWERS, BUDGETS, KEYS, PLANS, Kind, Tree, root_of

_MOST_PROBLEMS = 50
_ROWS_AT_ONCE = 10_000
_BOOKED = re.compile(
    r"([0-9a-f]{8})/([1-9][0-9]*)(?:-([1-9][0-9]*)|#([1-9][0-9]*)(?:-([1-9][0-9]*))?)?"
)


class StoredEntry(NamedTuple):
    """An entry with the digest that is stored beside it, and the rows that it belongs to."""

    entry: Entry
    digest: bytes
    account_id: int | None
    budget_id: int | None


class MalformedEntry(NamedTuple):
    """A row among the entries that no ledger writes: a number in place of a text, or the
    reverse.
    """

    seq: object


@dataclass(frozen=True)
class ReceiptClaim:
    """The entries that paid for a release, as its receipt names them.

    They were there when it was written, and nobody can take that back.

    Attributes:
        identifier: name of the receipt.
        ledger: first eight letters of the ledger's name.
        first, last: positions of its entries.
        digest: digest of the last of them, 64 hexadecimal digits.
        answers: number of answers that it is about.
        together: whether they are of a plan, which one entry pays for as one answer.
        leased: the first and the last answer of the entry, where that is a lease, else None.
    """

    identifier: str
    ledger: str
    first: int
    last: int
    digest: str
    answers: object
    together: bool
    leased: tuple[int, int] | None = None

    @classmethod
    def of(cls, receipt: Receipt | Mapping[str, Any]) -> Self:
        """Return the claim of a receipt, or of its ``to_dict``.

        Raises:
            InvalidInput: it was booked in no ledger, or does not say where.
        """
        values = receipt.to_dict() if isinstance(receipt, Receipt) else receipt
        identifier, digest, position = (
            values.get(name) for name in ("identifier", "digest", "position")
        )
        found = _BOOKED.fullmatch(str(values.get("booked", "")))
        if found is None:
            raise InvalidInput(
                f"receipt {identifier!r:.60}: expected one that is booked in a ledger, got "
                f"booked={values.get('booked')!r:.60}"
            )
        ledger, first, last = found[1], int(found[2]), int(found[3] or found[2])
        if (
            type(position) is not int
            or position != last
            or not re.fullmatch("[0-9a-f]{64}", str(digest))
        ):
            raise InvalidInput(
                f"receipt {identifier!r:.60}: expected position and digest of its last entry, "
                f"got position={position!r:.30}"
            )
        leased = (int(found[4]), int(found[5] or found[4])) if found[4] else None
        answers, together = values.get("answers"), values.get("together") is True
        return cls(str(identifier), ledger, first, last, str(digest), answers, together, leased)


@dataclass(frozen=True)
class Verification:
    """The findings of ``verify``.

    Attributes:
        entries: number of entries read.
        anchor: "position:digest" of the last entry. Kept elsewhere, it proves later that nothing up
            to here was rewritten.
        problems: problems in plain words, none when all is well. At most 50 are listed.
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
    last_at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return (
            f"epsilon={epsilon_value(self.epsilon)}, delta={delta_value(self.delta)}, "
            f"{self.answers} answer(s) in "
            f"{self.reservations} call(s), {self.commits} of them committed"
        )


@dataclass
class _Walk:
    """The state of one pass over the entries."""

    problems: list[str] = field(default_factory=list)
    read: int = 0
    policy: str | None = None
    charged: tuple[int, int] = (0, 0)
    gap: tuple[int, int] = (0, 0)
    lost: defaultdict[int, _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    confirmed: set[str] = field(default_factory=set)
    spent: defaultdict[int, _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    granted: defaultdict[int, _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    account_of: dict[int, int] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)
    receipts: dict[int, str] = field(default_factory=dict)

    def report(self, problem: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)


def verify(
    store: Store,
    *,
    anchor: str | None = None,
    receipts: Sequence[ReceiptClaim] = (),
    kept: bool = True,
) -> Verification:
    """Recompute the chain, every account, every budget and the tree over all rows, in one snapshot.

    It also checks the schema. Each problem is named: a changed, dropped or reordered entry, or a
    total that is not the sum of its entries. So is a row of the service or of a plan that the
    chain does not know, and a constraint or trigger that is missing or was added.

    Somebody who can rewrite the whole database can also rewrite the chain, and an old copy is
    whole. The anchor that is kept outside the database catches both. Where that was put back as
    well, an ``anchor`` noted elsewhere or clients' ``receipts`` do.

    Args:
        store: the ledger's database.
        anchor: the anchor of an earlier verification or report, or None.
        receipts: claims of clients' receipts.
        kept: whether to compare with the anchor that is kept outside the database. It is False for
            copies.

    Raises:
        InvalidInput: ``anchor`` is not "position:digest".
        LedgerUnavailable: the ledger cannot be reached or read, or there is none. Whatever a
            reachable ledger holds, it is no error.
    """
    named = [] if anchor is None else [_parse_anchor(anchor)]
    walk = _Walk()
    before = _kept_anchor(store, walk) if kept else None
    end = ""
    try:
        with store.read() as connection:
            for problem in schema_problems(connection):
                walk.report(problem)
            end = _walk_all(walk, connection, before, named, receipts)
    except (LedgerUnavailable, CorruptLedger, sa.exc.SQLAlchemyError) as error:
        if not _is_damage(error):
            raise
        walk.report(f"the database cannot be read to its end: {' '.join(str(error).split())[:200]}")
    return Verification(walk.read, end, tuple(walk.problems))


def _kept_anchor(store: Store, walk: _Walk) -> Anchor | None:
    """Return the anchor that is kept for this ledger, read before the snapshot it is compared
    with.
    """
    try:
        with store.read() as connection:
            tip = read_tip(connection, check=False)
        return store.anchor_of(tip.ledger).read()
    except CorruptLedger:
        return None  # the walk says so
    except LedgerUnavailable as error:
        if not _is_damage(error):
            walk.report(str(error))
        return None


def _walk_all(
    walk: _Walk,
    connection: Session,
    kept: Anchor | None,
    named: list[tuple[int, str]],
    receipts: Sequence[ReceiptClaim],
) -> str:
    top = read_tip(connection, check=False)
    if not top.is_whole:
        walk.report("the ledger's head does not match its own digest")
    if kept is not None:
        named = [*named, (kept.seq, kept.digest)]
    expected = defaultdict(set)
    for position, expected_digest in named:
        expected[position].add(expected_digest)
    if any(digest != top.genesis.hex() for digest in expected[0]):
        walk.report("the anchor is of another ledger")
    claims, before = defaultdict(list), dict[int, int]()
    for receipt in receipts:
        claims[receipt.last].append(receipt)
        before[receipt.first] = 0
        walk.receipts[receipt.last] = ""
    digest, seq, answers = top.genesis, 0, 0
    for stored in stored_entries(connection):
        walk.read += 1
        if isinstance(stored, MalformedEntry):
            walk.report(f"entry {stored.seq!r:.40} holds what no ledger writes")
            continue
        _check_link(walk, stored, seq, digest)
        _add_up(walk, stored)
        seq, digest = stored.entry.seq, stored.digest
        if seq in before:
            before[seq] = answers
        answers += stored.entry.answers
        if any(digest.hex() != other for other in expected.pop(seq, ())):
            walk.report(
                f"entry {seq} is not the one that the anchor names; entries up to it were rewritten"
            )
        for claim in claims.get(seq, ()):
            if claim.digest == digest.hex():
                walk.confirmed.add(claim.identifier)
                if not _paid(claim, answers - before[claim.first]):
                    walk.report(
                        f"receipt {claim.identifier} is of other answers than entry {seq} paid for"
                    )
    if (top.seq, top.digest) != (seq, digest):
        walk.report(
            f"the ledger's head names entry {top.seq}, the last entry is {seq}; entries were "
            "dropped or the head was changed"
        )
    for position in expected:
        if position != 0:
            walk.report(
                f"the anchor names entry {position}, which is not here, the last entry is "
                f"{seq}; entries were dropped or an old "
                "copy was put back"
            )
    if (top.spent, top.gap, top.policy.text) != (
        walk.charged,
        walk.gap,
        walk.policy if walk.policy is not None else top.first,
    ):
        walk.report("the ledger's head says another policy, total or gap than its entries")
    _check_receipts(walk, top.ledger, receipts)
    _check_budgets(walk, connection, _check_accounts(walk, connection))
    _check_tree(walk, connection, top.root)
    return f"{top.seq}:{top.digest.hex()}"


def _check_tree(walk: _Walk, connection: Session, root: bytes) -> None:
    """Name rows that are not the ones of the last entry, by comparing them with the tree."""
    items: dict[bytes, bytes] = {}
    kinds: dict[bytes, Kind] = {}
    for kind, table in _ROWS:
        query = sa.select(*(raw(column) if _is_bytes(column) else column for column in table.c))
        if "statement_id" in table.c:
            query = query.add_columns(statements.c.statement).outerjoin(
                statements, statements.c.id == table.c.statement_id
            )
        for row in connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE)):
            try:
                key = kind.key_of(row._mapping)
                items[key] = kind.digest(row._mapping)
            except TypeError:
                walk.report(f"a row of the table {kind.name} holds what no ledger writes")
            else:
                kinds[key] = kind
    stored: dict[bytes, bytes] = {}
    try:
        stored = dict(Tree(connection, root).items())
    except CorruptLedger:
        walk.report("the tree over the rows was changed")
        if root == root_of(items):
            return  # its nodes, but no row
    for key, digest in items.items():
        if stored.pop(key, None) != digest:
            walk.report(f"a row of the table {kinds[key].name} is not as the chain knows it")
    if stored:
        walk.report(f"{len(stored)} row(s) that the chain knows were removed")


_ROWS: tuple[tuple[Kind, sa.Table], ...] = (
    (BUDGETS, budgets),
    (ACCOUNTS, accounts),
    (PLANS, plan_counts),
    (KEYS, api_keys),
    (ANSWERS, service_answers),
)


def _is_bytes(column: sa.ColumnElement[Any]) -> bool:
    return isinstance(column.type, sa.LargeBinary)


def stored_entries(connection: Session) -> Iterator[StoredEntry | MalformedEntry]:
    """Yield every entry in the order of the chain, a few thousand in memory at a time."""
    scope = [sa.func.coalesce(accounts.c[name], budgets.c[name], "") for name in PARTS]
    mine = entries.c
    query = (
        sa.select(
            *(
                mine.seq,
                mine.at,
                mine.action,
                *scope,
                sa.func.coalesce(statements.c.statement, ""),
                mine.epsilon,
                mine.delta,
            ),
            *(
                mine.answers,
                mine.mechanism,
                sa.case(
                    (mine.reservation.is_(None), 0),
                    (mine.reservation == 0, -1),
                    else_=mine.reservation,
                ),
                mine.receipt,
                raw(mine.state),
                raw(mine.digest),
            ),
            *(mine.account_id, mine.budget_id),
        )
        .outerjoin(statements, statements.c.id == mine.statement_id)
        .outerjoin(accounts, accounts.c.id == mine.account_id)
        .outerjoin(budgets, budgets.c.id == mine.budget_id)
        .order_by(mine.seq)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    for *fields, state, digest, account_id, budget_id in connection.execute(query):
        whole = all(type(value) is kind for value, kind in zip(fields, _KINDS, strict=True))
        if (
            whole
            and isinstance(digest, bytes | memoryview)
            and isinstance(state, bytes | memoryview)
            and _is_id(account_id)
            and _is_id(budget_id)
        ):
            entry = Entry(*fields)._replace(state=bytes(state).hex())
            yield StoredEntry(entry, bytes(digest), account_id, budget_id)
        else:
            yield MalformedEntry(fields[0])


_KINDS = (int, int, str, str, str, str, str, int, int, int, str, int, str)
"""Types of an entry's fields but its state."""


def _is_id(value: object) -> bool:
    return value is None or type(value) is int


def _is_damage(error: Exception) -> bool:
    """Return whether a database could be reached but holds what no ledger writes."""
    if isinstance(error, CorruptLedger | sa.exc.InvalidRequestError | sa.exc.ArgumentError):
        return True
    found = error.__cause__ if isinstance(error, LedgerUnavailable) else error
    return fault_of(found) in ("damaged", "foreign", "tables")


def _check_receipts(walk: _Walk, ledger: str, receipts: Sequence[ReceiptClaim]) -> None:
    for receipt in receipts:
        if receipt.ledger != ledger[:8]:
            walk.report(f"receipt {receipt.identifier} is of another ledger")
        elif receipt.identifier not in walk.confirmed:
            walk.report(
                f"receipt {receipt.identifier} names entry {receipt.last}, which is not here "
                "as the receipt knows it; entries "
                "were dropped or an old copy was put back"
            )
        elif receipt.leased is None and any(
            seq not in walk.committed for seq in range(receipt.first, receipt.last + 1)
        ):
            walk.report(
                f"receipt {receipt.identifier} was released, but its reservation is still open"
            )
        elif (
            receipt.leased is None
            and not receipt.together  # only the first receipt of a plan is booked
            and walk.receipts[receipt.last] != receipt.identifier
        ):
            walk.report(
                f"receipt {receipt.identifier} names entry {receipt.last}, which paid for another"
            )
    _check_leases(walk, receipts)


def _paid(claim: ReceiptClaim, answers: int) -> bool:
    """Return whether entries that paid for so many answers paid for those of a receipt."""
    if claim.leased is None:
        return answers == (1 if claim.together else claim.answers)
    first, last = claim.leased
    return first <= last <= answers and claim.answers == last - first + 1


def _check_leases(walk: _Walk, receipts: Sequence[ReceiptClaim]) -> None:
    """Name receipts that were given the same answers of one lease.

    A lease may be open while its answers are out.
    """
    leased = sorted(
        (claim.last, *claim.leased, claim.identifier)
        for claim in receipts
        if claim.leased is not None
    )
    for before, after in pairwise(leased):
        if before[0] == after[0] and after[1] <= before[2] and before[3] != after[3]:
            walk.report(
                f"receipts {before[3]} and {after[3]} were given the same answers of entry "
                f"{after[0]}"
            )


def _check_link(walk: _Walk, stored: StoredEntry, before: int, digest: bytes) -> None:
    seq = stored.entry.seq
    if seq != before + 1 and not (stored.entry.action == "accept" and seq > before):
        gap = (
            f"entry {before + 1} is"
            if seq == before + 2
            else f"entries {before + 1} to {seq - 1} are"
        )
        walk.report(f"{gap} missing")
    elif stored.entry.digest(digest) != stored.digest:
        walk.report(
            f"entry {seq} does not match its digest: it, or its place in the order, was changed"
        )


def _add_up(walk: _Walk, stored: StoredEntry) -> None:
    entry, account = stored.entry, stored.account_id
    if (account is not None) != (entry.action in ("reserve", "commit")) or (
        stored.budget_id is not None
    ) != (entry.action in ("grant", "gap")):
        walk.report(f"entry {entry.seq} belongs to another account or budget than its action says")
    if entry.action == "grant" and stored.budget_id is not None:
        sign = -1 if entry.mechanism == LOWERED else 1
        walk.granted[stored.budget_id].epsilon += sign * entry.epsilon
        walk.granted[stored.budget_id].delta += sign * entry.delta
    elif entry.action == "gap" and stored.budget_id is not None:
        walk.lost[stored.budget_id].epsilon += entry.epsilon
        walk.lost[stored.budget_id].delta += entry.delta
    elif entry.action == "accept":
        walk.gap = (
            min(walk.gap[0] + entry.epsilon, LARGEST),
            min(walk.gap[1] + entry.delta, LARGEST),
        )
    elif entry.action == "policy":
        walk.policy = entry.mechanism
    elif entry.action == "note":
        pass  # it spends nothing
    elif entry.action == "reserve" and account is not None:
        walk.charged = (
            min(walk.charged[0] + entry.epsilon, LARGEST),
            min(walk.charged[1] + entry.delta, LARGEST),
        )
        sums = walk.spent[account]
        sums.epsilon += entry.epsilon
        sums.delta += entry.delta
        sums.answers += entry.answers
        sums.reservations += 1
        sums.last_at = entry.at
        walk.account_of[entry.seq] = account
    elif entry.action == "commit" and account is not None:
        walk.spent[account].commits += 1
        if walk.account_of.get(entry.reservation) != account or entry.reservation in walk.committed:
            walk.report(
                f"entry {entry.seq} commits entry {entry.reservation}, which is no open "
                "reservation of its account"
            )
        walk.committed.add(entry.reservation)
        if entry.reservation in walk.receipts:
            walk.receipts[entry.reservation] = entry.receipt
    else:
        walk.report(f"entry {entry.seq} has no account or budget")


def _check_accounts(walk: _Walk, connection: Session) -> dict[int, tuple[Scope, int]]:
    """Return every account's scope and statement, once its totals are compared with its entries."""
    found: dict[int, tuple[Scope, int]] = {}
    for row in connection.execute(sa.select(accounts)):
        if not _is_well_formed(row, accounts):
            walk.report(f"account {row.id!r:.40} holds what no ledger writes")
            continue
        scope = Scope.stored(row.principal, row.subject, row.bundle)
        found[row.id] = (scope, row.statement_id)
        stored, sums = (
            _Sums(row.spent_epsilon, row.spent_delta, row.answers, row.reservations, row.commits),
            walk.spent[row.id],
        )
        if stored != sums:
            walk.report(f"account {scope.describe()} says {stored}; its entries say {sums}")
        elif row.last_at != sums.last_at:
            walk.report(
                f"account {scope.describe()} says that it spent last at another time than its "
                "entries"
            )
    for account in walk.spent.keys() - found.keys():
        walk.report(f"entries of account {account} have no account")
    return found


def _check_budgets(
    walk: _Walk, connection: Session, all_accounts: dict[int, tuple[Scope, int]]
) -> None:
    """Compare every budget with the accounts that it has to count, its grants and what they
    spent.
    """
    known: set[int] = set()
    indexes: dict[tuple[bool, ...], defaultdict[tuple[str, ...], set[int]]] = {}
    for row in connection.execute(sa.select(budgets)).all():
        if not _is_well_formed(row, budgets):
            walk.report(f"budget {row.id!r:.40} holds what no ledger writes")
            continue
        known.add(row.id)
        scope = Scope.stored(row.principal, row.subject, row.bundle)
        covered = _covered(indexes, scope, all_accounts)
        if not {all_accounts[account][1] for account in covered} <= {row.statement_id}:
            walk.report(f"budget {scope.describe()} counts an account of another kind or adjacency")
        _check_amounts(walk, row, scope, covered)
    for budget in walk.granted.keys() - known:
        walk.report(f"grants of budget {budget} have no budget")


def _check_amounts(walk: _Walk, row: Row[Any], scope: Scope, covered: set[int]) -> None:
    granted, lost = walk.granted[row.id], walk.lost[row.id]
    spent = (
        sum(walk.spent[account].epsilon for account in covered) + lost.epsilon,
        sum(walk.spent[account].delta for account in covered) + lost.delta,
    )
    if (row.granted_epsilon, row.granted_delta) != (granted.epsilon, granted.delta):
        walk.report(f"budget {scope.describe()} grants another amount than its entries")
    if (row.spent_epsilon, row.spent_delta) != spent or (row.gap_epsilon, row.gap_delta) != (
        lost.epsilon,
        lost.delta,
    ):
        walk.report(f"budget {scope.describe()} has spent another amount than its entries")
    if spent[0] > granted.epsilon or spent[1] > granted.delta:
        walk.report(f"budget {scope.describe()} is overspent")
    owed = (walk.gap[0] - lost.epsilon, walk.gap[1] - lost.delta)
    if (owed[0] > 0 and spent[0] < granted.epsilon) or (owed[1] > 0 and spent[1] < granted.delta):
        walk.report(f"budget {scope.describe()} was not charged what lost entries may have spent")


def _is_well_formed(row: Row[Any], table: sa.Table) -> bool:
    return all(
        type(value) is (str if isinstance(column.type, sa.String) else int)
        for value, column in zip(row, table.columns, strict=True)
    )


def _covered(
    indexes: dict[tuple[bool, ...], defaultdict[tuple[str, ...], set[int]]],
    budget: Scope,
    all_accounts: dict[int, tuple[Scope, int]],
) -> set[int]:
    """Return the accounts that ``budget`` covers, from one index per set of names that budgets
    give.

    There are seven such sets at most.
    """
    given = tuple(bool(value) for value in budget.parts.values())
    if given not in indexes:
        index: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
        for account, (scope, _) in all_accounts.items():
            index[tuple(compress(scope.parts.values(), given))].add(account)
        indexes[given] = index
    return indexes[given][tuple(compress(budget.parts.values(), given))]


def _parse_anchor(anchor: str) -> tuple[int, str]:
    try:
        seq, digest = anchor.split(":")
        return int(seq), bytes.fromhex(digest).hex()
    except ValueError:
        raise InvalidInput(
            f"anchor={anchor!r:.80}: expected 'position:digest' as printed by report or verify"
        ) from None
