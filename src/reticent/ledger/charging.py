"""One charge: covering budgets, whether it fits, its entries, and the reservation for the receipt.

It is made for one scope, or for thousands at once. A charge that does not fit is refused, in words
that say what would.
"""

from __future__ import annotations

from collections import Counter, defaultdict, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product, starmap
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import sqlalchemy as sa

from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count
from reticent.core.errors import BudgetExceeded, IncompatibleGuarantees, InvalidInput
from reticent.core.scopes import PARTS, Policy, Scope
from reticent.ledger.chain import Entry, Line, Page, append, digest_at
from reticent.ledger.charges import (
    Budget,
    Charge,
    charge_of,
    delta_value,
    describe_statement,
    epsilon_value,
    largest_fitting,
    statement_of,
)
from reticent.ledger.schema import accounts, budgets, statements
from reticent.ledger.statements import FEW, Change, Statement, batches, named, within
from reticent.ledger.tree import ACCOUNTS, BUDGETS, Kind, changed

_NAMED = 2
"""Scopes that a refusal names at most."""

_SHARES = 16
"""Into how many blocks the rest of a budget is cut, so that one process cannot strand all of it."""

_LONGEST_TEXT = 1000

Done = TypeVar("Done")
Outcome = TypeVar("Outcome", covariant=True)
T = TypeVar("T")

Key = tuple[str, str, str]
"""Principal, subject and bundle."""


class Cover(NamedTuple):
    """A request's exact scope, its account and its budgets.

    Attributes:
        scope: scope of the request.
        account: the scope's row, or None where it has not spent before.
        budgets: rows of every budget that covers it, by id.
        lacking: the reason why no budget answers for it, or "" where one does.
    """

    scope: Scope
    account: Any | None
    budgets: tuple[Any, ...]
    lacking: str


def covering(
    page: Page, scopes: Sequence[Scope], *, statement: str, to_charge: bool = False
) -> list[Cover]:
    """Return what covers each of different scopes, as far as they may be charged at all.

    The last entry of the chain decides which budgets and accounts there are, and what they hold.

    Args:
        page: page of a transaction.
        scopes: scopes of one request.
        statement: kind and adjacency of their charge.
        to_charge: whether ``post_charges`` follows, which compares the few rows that it changes
            with what this process remembers of them.

    Raises:
        InvalidInput: one is no scope, or leaves out what the policy requires.
        IncompatibleGuarantees: one is covered by a budget of another kind or adjacency.
        CorruptLedger: a budget or an account was changed by other means.
    """
    policy = page.tip.policy
    for scope in scopes:
        if not isinstance(scope, Scope):
            raise InvalidInput(f"scope: expected a Scope, got {type(scope).__name__}")
        if not all(map(scope.parts.get, policy.required)):
            raise _unnamed(policy, scope)
    names = list(map(key_of, scopes))
    patterns = list(map(_patterns, names))
    every: dict[Key, bytes] = {}
    for mine in patterns:
        every.update(mine)
    mine_of = dict(zip(names, starmap(ACCOUNTS.key, names), strict=True))
    known = page.tree.find([*every.values(), *mine_of.values()])
    standing = _rows(page, BUDGETS, every, known, remembered=to_charge)
    of_each = _rows(page, ACCOUNTS, mine_of, known, remembered=to_charge)
    found = []
    for scope, name, mine in zip(scopes, names, patterns, strict=True):
        covered = [standing[one] for one in mine if one in standing]
        rows = tuple(sorted(covered, key=_ID))
        if any(row.statement != statement for row in rows):
            raise _other_statement(scope, rows, statement)
        open_parts = [p for p in policy.required if not any(getattr(row, p) for row in rows)]
        lacking = _no_budget(scope, rows, open_parts) if open_parts or not rows else ""
        found.append(Cover(scope, of_each.get(name), rows, lacking))
    return found


_ID = attrgetter("id")


@lru_cache(maxsize=4096)
def _patterns(key: Key) -> dict[Key, bytes]:
    """Return the names of every budget that would cover a scope, with their keys in the tree."""
    every = product(*(("", name) if name else ("",) for name in key))
    return {(p, s, b): BUDGETS.key(p, s, b) for p, s, b in every if p or s or b}


def rows_at(page: Page, kind: Kind, names: Iterable[Key]) -> dict[Key, Any]:
    """Return the rows of budgets, or of accounts, that have these names, as the chain knows them.

    Args:
        page: page of a transaction.
        kind: ``BUDGETS`` or ``ACCOUNTS``.
        names: names of different rows, some of which may not exist.

    Raises:
        CorruptLedger: one was added, changed or removed by other means.
    """
    keys = {name: kind.key(*name) for name in names}
    return _rows(page, kind, keys, page.tree.find(keys.values()))


def _rows(
    page: Page,
    kind: Kind,
    keys: Mapping[Key, bytes],
    known: Mapping[bytes, bytes],
    *,
    remembered: bool = False,
) -> dict[Key, Any]:
    there = {name: known[key] for name, key in keys.items() if key in known}
    memory = _remembered(page.tip.ledger)
    if len(memory) > _MOST_REMEMBERED:
        memory.clear()
    if remembered and len(there) <= FEW:
        mine = dict(zip(there, map(memory.get, there.values()), strict=True))
        if None not in mine.values():
            return mine
    found = {row[1:4]: row for row in _ROWS[kind.name].read(page, list(there))}
    for name, digest in there.items():
        row = found.get(name)
        if row is None or kind.digest(row) != digest:
            raise changed(kind)
        memory[digest] = row
    return found


_MOST_REMEMBERED = 1 << 12


@lru_cache(maxsize=16)
def _remembered(ledger: str) -> dict[bytes, Any]:
    """Return rows of a ledger by their digests: right whatever its database says.

    Another ledger may have the same row under another number of its statement, which no digest has.
    """
    return {}


class _Rows:
    """Statements on budgets, or on accounts, each row with its statement.

    Args:
        kind: ``BUDGETS`` or ``ACCOUNTS``.
        table: their table.
        spending: columns that a charge changes.
        change: how it changes many of them.
    """

    def __init__(self, kind: Kind, table: sa.Table, spending: Sequence[str], change: str) -> None:
        names = [column.name for column in table.c]
        make: Any = namedtuple  # its names are known when it runs
        self.row: Any = make("Row", [*names, "statement"])
        self._kind, self._table = kind, table
        self._one = Statement(
            f"SELECT {named(f'{table.name}.{name}' for name in names)}, statement FROM "
            f"{table.name} JOIN statements ON statements.id = statement_id WHERE "
            + " AND ".join(f"{name} = ?" for name in PARTS),
            self.row._make,
        )
        self._several = sa.select(*table.c, statements.c.statement).join(
            statements, statements.c.id == table.c.statement_id
        )
        where = " AND ".join(f"{name} = ?" for name in kind.columns if name != "statement")
        self._exchange: Statement[Any] = Statement(
            f"UPDATE {table.name} SET {', '.join(f'{name} = ?' for name in spending)} WHERE "
            f"{where} AND statement_id = (SELECT id FROM statements WHERE statement = ?)"
        )
        self._after = attrgetter(*spending)
        self._before = attrgetter(*(n for n in kind.columns if n != "statement"), "statement")
        self._change = Change(table, change)

    def read(self, page: Page, names: Sequence[Key]) -> Iterable[Any]:
        """Return the rows with these names, as the database has them."""
        if len(names) <= FEW:
            return [row for name in names for row in self._one.rows(page.connection, *name)]
        return [
            self.row._make(row)
            for fixed, free, values in batches(page.connection, names, PARTS)
            for row in page.connection.execute(
                self._several.where(*within(page.connection, self._table, fixed, free, values))
            )
        ]

    def write(self, page: Page, pairs: Sequence[tuple[Any, Any]], amounts: Any) -> None:
        """Put rows in the place of those that ``covering`` returned, of which it has read many.

        Args:
            page: page of the transaction to post in.
            pairs: rows before and after.
            amounts: function that returns what ``change`` needs of a pair.

        Raises:
            CorruptLedger: the database has another row than the one before. It is raised no later
                than the transaction ends.
        """
        session, kind = page.connection, self._kind
        if len(pairs) > FEW:
            self._change.run(session, ((old.id, amounts(old, new)) for old, new in pairs))
        elif pairs:
            each = [(*self._after(new), *self._before(old)) for old, new in pairs]
            self._exchange.run(session, *each, otherwise=lambda: changed(kind))


_SPENT = ("spent_epsilon", "spent_delta")
_ADDED = ", ".join(f"{name} = {name} + ?" for name in _SPENT)
_ROWS = {
    "budgets": _Rows(BUDGETS, budgets, _SPENT, _ADDED),
    "accounts": _Rows(
        ACCOUNTS,
        accounts,
        (*_SPENT, "answers", "reservations", "last_at"),
        f"{_ADDED}, answers = answers + ?, reservations = reservations + 1, last_at = ?",
    ),
}


def key_of(scope: Scope) -> Key:
    """Return the scope's names, as a row holds them."""
    return (scope.principal, scope.subject, scope.bundle)


def _unnamed(policy: Policy, scope: Scope) -> InvalidInput:
    part = next(part for part in policy.required if not getattr(scope, part))
    return InvalidInput(
        f"scope: expected a {part}, which this ledger requires of every request, got "
        f"{scope.describe()}; name it, or "
        "change the ledger's policy with `reticent ledger policy`; nothing was charged"
    )


def _other_statement(scope: Scope, rows: Sequence[Any], statement: str) -> IncompatibleGuarantees:
    row = next(row for row in rows if row.statement != statement)
    other = Scope.stored(row.principal, row.subject, row.bundle)
    return IncompatibleGuarantees(
        f"{scope.describe()}: costs compose only within one kind and adjacency: "
        f"the budget of {other.describe()} "
        f"is for {describe_statement(row.statement)}, the request for "
        f"{describe_statement(statement)}"
    )


def _no_budget(scope: Scope, rows: Sequence[Any], unnamed: Sequence[str]) -> str:
    if not rows:
        return f"no budget covers {scope.describe()}"
    return f"no budget names {unnamed[0]}={scope.parts[unnamed[0]]}, as this ledger requires"


def uncovered(cover: Cover) -> BudgetExceeded:
    """Return the refusal of a request that no budget answers for."""
    return BudgetExceeded(
        f"{cover.lacking}; requested more than the 0 that is left; the largest request that would "
        "fit is 0 answers; check the "
        "spelling, or grant a budget with `reticent ledger grant`; nothing was charged"
    )


class Claim(NamedTuple):
    """The charge of one scope.

    Attributes:
        cover: the scope, its account and its budgets.
        answers: number of answers that are paid for.
        charge: their cost.
    """

    cover: Cover
    answers: int
    charge: Charge


class Booking(NamedTuple):
    """An entry that charged an account.

    Attributes:
        entry: the entry as it stands in the chain.
        digest: its digest, 32 bytes.
        statement_id, account_id: ids of the rows that it belongs to.
    """

    entry: Entry
    digest: bytes
    statement_id: int
    account_id: int


def booked_as(ledger: str, first: int, last: int) -> str:
    """Return the name of a reservation, as receipts have it.

    Args:
        ledger: the ledger's name.
        first, last: positions of its entries.
    """
    return f"{ledger[:8]}/{first}" + (f"-{last}" if last > first else "")


Along = Callable[[str], None]
"""Writes what else belongs to a charge, before the entries that vouch for it. It gets the name of
the reservation."""


def _nothing(_: str) -> None:
    pass


def post_charges(
    page: Page,
    claims: Sequence[Claim],
    *,
    statement: str,
    mechanism: str,
    along: Along = _nothing,
) -> tuple[Booking, ...]:
    """Charge accounts and budgets, and append one entry per claim.

    The caller has checked that the claims fit.

    Args:
        page: page of the transaction to post in.
        claims: claims of different scopes, each with at least one budget.
        statement: kind and adjacency of all of them.
        mechanism: cause of the costs.
        along: function that writes more in the same transaction, an ``Along``.
    """
    statement_id = int(claims[0].cover.budgets[0].statement_id)
    opened = _open_accounts(page, claims, statement, statement_id)
    memory = _remembered(page.tip.ledger)
    spent: defaultdict[Any, list[int]] = defaultdict(lambda: [0, 0])
    lines: list[Line] = []
    charged: list[tuple[Any, Any]] = []
    items: dict[bytes, bytes] = {}
    for seq, claim in enumerate(claims, page.tip.seq + 1):
        cover, charge = claim.cover, claim.charge
        for row in cover.budgets:
            sums = spent[row]
            sums[0] += charge.epsilon
            sums[1] += charge.delta
        key = key_of(cover.scope)
        if cover.account is None:
            account = opened[key]
        else:
            account = _charged(cover.account, claim, page.at)
            charged.append((cover.account, account))
        items[ACCOUNTS.key(*key)] = digest = ACCOUNTS.digest(account)
        memory[digest] = account
        entry = Entry(
            *(seq, page.at, "reserve", *key, statement),
            *(charge.epsilon, charge.delta, claim.answers, mechanism, 0, ""),
        )
        lines.append(Line(entry, statement_id, account.id))
    paid = []
    for row, (epsilon, delta) in spent.items():
        after = row._replace(
            spent_epsilon=row.spent_epsilon + epsilon, spent_delta=row.spent_delta + delta
        )
        items[BUDGETS.key(*after[1:4])] = digest = BUDGETS.digest(after)
        memory[digest] = after
        paid.append((row, after))
    page.tree.put(items)  # first: a row that is not as it was then undoes all
    _ROWS["budgets"].write(page, paid, _spent_between)
    _ROWS["accounts"].write(
        page,
        charged,
        lambda old, new: (*_spent_between(old, new), new.answers - old.answers, page.at),
    )
    along(booked_as(page.tip.ledger, lines[0].entry.seq, lines[-1].entry.seq))
    return tuple(
        Booking(line.entry, digest, statement_id, int(line.account_id or 0))
        for line, digest in zip(lines, append(page, lines), strict=True)
    )


def _spent_between(old: Any, new: Any) -> tuple[int, int]:
    return (new.spent_epsilon - old.spent_epsilon, new.spent_delta - old.spent_delta)


def _charged(account: Any, claim: Claim, at: int) -> Any:
    """Return the row of an account after a charge at this time."""
    return account._replace(
        spent_epsilon=account.spent_epsilon + claim.charge.epsilon,
        spent_delta=account.spent_delta + claim.charge.delta,
        answers=account.answers + claim.answers,
        reservations=account.reservations + 1,
        last_at=at,
    )


def _open_accounts(
    page: Page, claims: Sequence[Claim], statement: str, statement_id: int
) -> dict[Key, Any]:
    """Make an account for each scope that has none, charged with its claim, and return the rows."""
    make = _ROWS["accounts"].row
    made = {}
    for claim in claims:
        if claim.cover.account is None:
            key = key_of(claim.cover.scope)
            none = make(0, *key, statement_id, 0, 0, 0, 0, 0, 0, statement)
            made[key] = _charged(none, claim, page.at)
    if made:
        rows = [row._asdict() for row in made.values()]
        for row in rows:
            del row["id"], row["statement"]
        insert = accounts.insert().returning(accounts.c.id, *(accounts.c[name] for name in PARTS))
        for number, *names in page.connection.execute(insert, rows):
            key = (names[0], names[1], names[2])
            made[key] = made[key]._replace(id=number)
    return made


def post_commits(page: Page, bookings: Sequence[Booking], *, receipt: str) -> None:
    """Append one entry per booking that ties it to ``receipt``, unless that was done before.

    So a commit may be repeated if its caller never learned the outcome, because the connection
    broke or a disk was full.

    Args:
        page: page of the transaction to post in.
        bookings: bookings of one reservation, whose entries follow one another.
        receipt: text that identifies the receipt.

    Raises:
        InvalidInput: a booking is tied to another receipt, or is no longer in the ledger.
    """
    ends = bookings[0].entry.seq, bookings[-1].entry.seq
    # A commit comes behind its reservation: where that is the last entry, there is none yet.
    last = page.tip.digest
    done: dict[int, str] = {}
    if page.tip.seq > ends[1]:
        last = digest_at(page.connection, ends[1])
        done = dict(_RECEIPTS.rows(page.connection, *ends))
    if last != bookings[-1].digest:
        raise InvalidInput(
            f"reservation of entry {ends[1]} is not in this ledger, which has gone back in time "
            "since; reserve again"
        )
    other = sorted(seq for seq, found in done.items() if found != receipt)
    if other:
        raise InvalidInput(
            f"reservation of entry {other[0]} is committed already to another receipt; reserve "
            "again"
        )
    missing = [booking for booking in bookings if booking.entry.seq not in done]
    if not missing:
        return
    lines = []
    for seq, booking in enumerate(missing, page.tip.seq + 1):
        paid = booking.entry
        names = (paid.principal, paid.subject, paid.bundle)
        entry = Entry(
            seq, page.at, "commit", *names, paid.statement, 0, 0, 0, "", paid.seq, receipt
        )
        lines.append(Line(entry, booking.statement_id, booking.account_id))
    append(page, lines)
    _COUNT_COMMITS.run(page.connection, ((booking.account_id, ()) for booking in missing))


_COUNT_COMMITS = Change(accounts, "commits = commits + 1")
_RECEIPTS: Statement[Any] = Statement(
    "SELECT reservation, receipt FROM entries WHERE reservation BETWEEN ? AND ?"
)


Commit = Callable[[Sequence[Booking], str], None]
"""Ties bookings to a receipt, in a transaction of its own."""


class Reservation:
    """A durable charge, and the place to put the receipt of what it paid for.

    As a context manager it insists on that receipt: a block that ends without ``commit`` raises, so
    that an answer without a receipt does not leave it. A block that raises, or a process that dies,
    leaves the reservation spent and open.

    Attributes:
        id: name that goes into the receipt's ``booked``: the ledger's first letters and the entry,
            as "1a2b3c4d/7". A charge to several scopes has the first and the last of its
            consecutive entries, as "1a2b3c4d/7-9". Part of a lease has the answers that it takes of
            that entry, as "1a2b3c4d/7#13-15".
        position: position of the last of these entries in the ledger's chain.
        digest: digest of that entry, 64 hexadecimal digits. It vouches for everything up to there.
        charge: cost of all its scopes together, or for part of a lease what its answers would cost
            by themselves.
        scopes: number of scopes that were charged.
        bookings: these entries.

    Args:
        book: function that ties bookings to a receipt.
        bookings: entries that the charge appended, or for part of a lease the lease's own.
        ledger: the ledger's name.
        charge: the attribute of that name.
        part: answers that part of a lease takes, as "#13-15", or else "".

    References:
        - Haber and Stornetta (1991), "How to time-stamp a digital document",
          doi:10.1007/BF00196791, an entry that vouches for all before it.

    See Also:
        reticent.ledger.Ledger: makes them.
        reticent.core.Receipt: carries its name to the client.
    """

    def __init__(
        self,
        book: Commit,
        bookings: Sequence[Booking],
        *,
        ledger: str,
        charge: Charge,
        part: str = "",
    ) -> None:
        first, last = bookings[0].entry.seq, bookings[-1].entry.seq
        self._book = book
        self._part = part
        self._receipt: str | None = None
        self.bookings = tuple(bookings)
        self.id = booked_as(ledger, first, last) + part
        self.position = last
        self.digest = bookings[-1].digest.hex()
        self.charge = charge
        self.scopes = len(bookings)

    @property
    def committed(self) -> bool:
        """Whether a receipt was booked."""
        return self._receipt is not None

    def commit(self, receipt_id: str) -> None:
        """Book the receipt for every scope that was charged. The answer may leave once this
        returns.

        A commit that failed may be tried again, whether or not it had reached the database. The
        same receipt is booked once.

        Args:
            receipt_id: text that identifies the receipt, 1 to 1000 printable characters.

        Raises:
            InvalidInput: it was committed to another receipt before, or the text is no such text.
            LedgerUnavailable: the ledger could not be written. The charge stays and no answer may
                leave.
        """
        checked_text(receipt_id, "receipt_id")
        if self._receipt is not None and self._receipt != receipt_id:
            raise InvalidInput(
                f"reservation {self.id} is committed already; reserve again for another answer"
            )
        if self._receipt is None:
            self._book(self.bookings, receipt_id)
            self._receipt = receipt_id

    def committing(self, receipt_id: str) -> Callable[[Page], None]:
        """Return what ``commit`` posts, for a transaction of ``Ledger.post_together``.

        Raises:
            InvalidInput: not such a text, or part of a lease, which is committed as a whole.
        """
        checked_text(receipt_id, "receipt_id")
        if self._part:
            raise InvalidInput(
                f"reservation {self.id}: is part of a lease, whose receipts are noted by commit"
            )
        return lambda page: post_commits(page, self.bookings, receipt=receipt_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._receipt is None:
            raise InvalidInput(
                f"reservation {self.id} ended without commit(receipt_id); its charge stays, "
                "release nothing"
            )


class Work(Protocol[Outcome]):
    """A charge: the work of a transaction, and what is written along with it."""

    def __call__(self, page: Page, along: Along = _nothing) -> Outcome:
        """Charge, or return why not. It raises errors of reticent only before it writes."""


class Posting(NamedTuple, Generic[Done, T]):
    """One thing to be posted to a ledger.

    Attributes:
        work: the ``Work`` that is done in the transaction.
        result: function that makes a result or a refusal of ``work``'s outcome, once that is
            durable. It runs outside the transaction: finding the largest request that fits must
            not keep other writers waiting.
    """

    work: Work[Done]
    result: Callable[[Done], T]


def charge_one(
    commit: Commit,
    scope: Scope,
    event: PrivacyEvent,
    *,
    answers: int,
    slack_delta: float,
    least: int | None = None,
) -> Posting[Reservation | tuple[Any, ...], Reservation]:
    """Return the charge of one scope, for ``Ledger.reserve``.

    Args:
        commit: function that ties what was booked to a receipt.
        scope, event, answers, slack_delta: arguments of ``Ledger.reserve``.
        least: number of answers that are paid for where budgets run low, as in ``Ledger.lease``.
            None pays for all of them or for none.
    """
    most = count(answers, name="answers")
    least = most if least is None else least
    charge = charge_of(event, answers=least, slack_delta=slack_delta)
    statement = statement_of(event.guarantee)
    mechanism = checked_text(event.mechanism, "mechanism")

    def work(page: Page, along: Along = _nothing) -> Reservation | tuple[Any, ...]:
        (cover,) = covering(page, [scope], statement=statement, to_charge=True)
        if cover.lacking:
            raise uncovered(cover)
        if not charge.fits(cover.budgets):
            (cover,) = covering(page, [scope], statement=statement)  # read again, to be sure
            return cover.budgets
        claim = Claim(cover, most, charge)
        if least < most:
            paid = _block_size(event, cover.budgets, most=most, least=least)
            claim = Claim(cover, paid, charge_of(event, answers=paid, slack_delta=slack_delta))
        bookings = post_charges(
            page, [claim], statement=statement, mechanism=mechanism, along=along
        )
        return Reservation(commit, bookings, ledger=page.tip.ledger, charge=claim.charge)

    def result(done: Reservation | tuple[Any, ...]) -> Reservation:
        if isinstance(done, Reservation):
            return done
        standing = [Budget.of_row(row) for row in done]
        raise BudgetExceeded(refusal(charge, event, least, slack_delta, standing))

    return Posting(work, result)


def _block_size(event: PrivacyEvent, standing: Sequence[Any], *, most: int, least: int) -> int:
    """Return how many answers a block pays for: ``most``, or less where budgets run low.

    It is then a sixteenth of what is left, but no less than ``least``, which must fit.
    """
    plenty = charge_of(event, answers=_SHARES * most, slack_delta=0.0)
    if plenty.fits(standing):
        return most
    return min(most, max(least, largest_fitting(event, 0.0, standing) // _SHARES))


def charge_many(
    commit: Commit, scopes: Sequence[Scope], event: PrivacyEvent
) -> Posting[Reservation | list[Shortfall], Reservation]:
    """Return the charge of each answer to a scope of its own, for ``Ledger.reserve_each``."""
    answers = Counter(scopes)
    charges = {
        many: charge_of(event, answers=many, slack_delta=0.0) for many in set(answers.values())
    }
    statement = statement_of(event.guarantee)
    mechanism = checked_text(event.mechanism, "mechanism")

    def work(page: Page, along: Along = _nothing) -> Reservation | list[Shortfall]:
        found = covering(page, tuple(answers), statement=statement, to_charge=True)
        claims = [
            Claim(cover, answers[cover.scope], charges[answers[cover.scope]]) for cover in found
        ]
        short = shortfalls(claims, statement)
        if short:
            covering(page, tuple(answers), statement=statement)  # read again, to be sure
            return short
        bookings = post_charges(page, claims, statement=statement, mechanism=mechanism, along=along)
        return Reservation(commit, bookings, ledger=page.tip.ledger, charge=together(claims))

    def result(done: Reservation | list[Shortfall]) -> Reservation:
        if isinstance(done, Reservation):
            return done
        raise BudgetExceeded(refusal_of_many(done, len(answers), answers.total(), event))

    return Posting(work, result)


@dataclass(frozen=True)
class Shortfall:
    """A budget that many claims do not fit into together, or a claim that no budget answers for.

    Attributes:
        budget: the budget, or None.
        claims: claims that it cannot pay for together.
        charge: their cost.
        reason: the reason why there is no budget, or "" where there is one.
    """

    budget: Budget | None
    claims: list[Claim]
    charge: Charge
    reason: str = ""


def together(claims: Sequence[Claim]) -> Charge:
    """Return the cost of claims of different scopes together."""
    return Charge(
        sum(claim.charge.epsilon for claim in claims),
        sum(claim.charge.delta for claim in claims),
        "basic",
    )


def shortfalls(claims: Sequence[Claim], statement: str) -> list[Shortfall]:
    """Return every budget that cannot pay for all its claims, and the claims that have no
    budget.
    """
    rows = {row.id: row for claim in claims for row in claim.cover.budgets}
    paying: defaultdict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        for row in claim.cover.budgets:
            paying[row.id].append(claim)
    short = [
        Shortfall(None, [claim], claim.charge, claim.cover.lacking)
        for claim in claims
        if claim.cover.lacking
    ]
    for number, mine in paying.items():
        budget, charge = Budget.of_row(rows[number]), together(mine)
        if not charge.fits([budget]):
            short.append(Shortfall(budget, mine, charge))
    return short


def refusal_of_many(
    short: Sequence[Shortfall], scopes: int, answers: int, event: PrivacyEvent
) -> str:
    """Return the refusal of a request under many scopes, some of which lack budget."""
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
    """Return the refusal of a request for more answers under one scope than fit."""
    tightest = [budget.describe() for budget in standing if not charge.fits([budget])]
    return (
        f"requested {answers} answer(s) of {event.mechanism} at "
        f"epsilon={epsilon_value(charge.epsilon):g}, "
        f"delta={delta_value(charge.delta):g}; {' | '.join(tightest)}; "
        "the largest request that would fit is "
        f"{largest_fitting(event, slack_delta, standing)} answer(s); nothing was charged"
    )


def checked_scopes(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    """Return the scopes that a request names, at least one.

    Raises:
        InvalidInput: it names something else.
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


def checked_text(value: str, name: str) -> str:
    """Return ``value``, where a ledger can hold it: 1 to 1000 printable characters.

    Raises:
        InvalidInput: it is something else.
    """
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT or not value.isprintable():
        raise InvalidInput(
            f"{name}: expected 1 to {_LONGEST_TEXT} printable characters, got {value!r:.60}"
        )
    return value
