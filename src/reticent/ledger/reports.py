"""Reports: what is granted, spent and left, by whom, and how it came about over time.

Exports write every entry with its digest for another program or another archive.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from reticent.core.checks import count
from reticent.core.errors import CorruptLedger, UnknownName, WriteFailed
from reticent.core.files import check_replaceable, new_file_beside
from reticent.core.scopes import PARTS, Policy, Scope
from reticent.ledger.chain import Entry, read_tip
from reticent.ledger.charges import Budget, epsilon_value
from reticent.ledger.schema import accounts, budgets, entries, statements
from reticent.ledger.store import Store
from reticent.ledger.verification import MalformedEntry, stored_entries

Format = Literal["jsonl", "csv"]
COLUMNS = (*Entry._fields, "previous", "digest")
"""Columns of an export: those of an entry, then the digest before it and its own, in
hexadecimal.
"""


@dataclass(frozen=True)
class Account:
    """The spending of one exact scope, in micro-epsilon and pico-delta.

    Attributes:
        scope: principal, subject and bundle of its requests.
        statement: kind and adjacency of its costs.
        spent_epsilon: micro-epsilon.
        spent_delta: pico-delta.
        answers: number of answers paid for.
        reservations: number of calls.
        commits: number of calls whose receipt was booked. The others crashed, failed or are under
            way, and stay spent.
        last_at: time of the last reservation, microseconds since 1970, UTC.
    """

    scope: Scope
    statement: str
    spent_epsilon: int
    spent_delta: int
    answers: int
    reservations: int
    commits: int
    last_at: int


@dataclass(frozen=True)
class LedgerReport:
    """The standing of a ledger.

    Attributes:
        ledger: its name.
        entries: number of entries.
        anchor: "position:digest" of the last entry, as in ``Verification``.
        policy: parts that every request must name.
        budgets: budgets within the scope that was asked for, the tightest first.
        accounts: accounts within it, the largest spender first, cut at the limit.
        accounts_total: number of accounts without the limit.
    """

    ledger: str
    entries: int
    anchor: str
    policy: Policy
    budgets: tuple[Budget, ...]
    accounts: tuple[Account, ...]
    accounts_total: int


@dataclass(frozen=True, eq=False)
class Spending:
    """The spending of one budget over time.

    Attributes:
        budget: the budget as it stands.
        at: shape (n,) datetime64[us], UTC, ends of equal intervals, increasing.
        epsilon: shape (n,), epsilon spent up to then.
    """

    budget: Budget
    at: npt.NDArray[np.datetime64]
    epsilon: npt.NDArray[np.float64]


def report(store: Store, scope: Scope | None = None, *, limit: int = 100) -> LedgerReport:
    """Return how the ledger stands, from running totals.

    So its time depends on scopes and not on entries.

    Args:
        store: the ledger's database.
        scope: names that budgets and accounts must agree with, or None for all.
        limit: accounts listed at most, at least 1. Budgets are all listed.

    Raises:
        LedgerUnavailable: the ledger cannot be read.
    """
    limit = count(limit, name="limit")
    with store.read() as connection:
        top = read_tip(connection)
        standing = [Budget.of_row(row) for row in connection.execute(_budgets_of(scope))]
        within = _accounts_of(scope)
        total = connection.execute(
            sa.select(sa.func.count()).select_from(accounts).where(*within)
        ).scalar_one()
        query = (
            sa.select(accounts, statements.c.statement)
            .join(statements, statements.c.id == accounts.c.statement_id)
            .where(*within)
            .order_by(accounts.c.spent_epsilon.desc(), accounts.c.id)
            .limit(limit)
        )
        spenders = [
            Account(
                Scope.stored(row.principal, row.subject, row.bundle),
                *(
                    row.statement,
                    row.spent_epsilon,
                    row.spent_delta,
                    row.answers,
                    row.reservations,
                    row.commits,
                    row.last_at,
                ),
            )
            for row in connection.execute(query)
        ]
    standing.sort(key=lambda budget: budget.share_left)
    return LedgerReport(
        top.ledger,
        top.seq,
        top.anchor.text,
        top.policy,
        tuple(standing),
        tuple(spenders),
        int(total),
    )


def spending(
    store: Store, scope: Scope | None = None, *, points: int = 200, limit: int = 6
) -> list[Spending]:
    """Return what the tightest budgets within ``scope`` have spent over time.

    It reads every reservation once.

    Args:
        store: the ledger's database.
        scope: names that budgets must agree with, as in ``report``.
        points: number of equal intervals from the first to the last reservation, at least 1.
        limit: budgets at most, at least 1.

    Returns:
        One series per budget, or none where nothing was spent.

    Raises:
        LedgerUnavailable: the ledger cannot be read.
    """
    points, limit = count(points, name="points"), count(limit, name="limit")
    with store.read() as connection:
        rows = connection.execute(_budgets_of(scope)).all()
        rows = sorted(
            rows,
            key=lambda row: (
                1.0 - row.spent_epsilon / row.granted_epsilon if row.granted_epsilon else 0.0
            ),
        )[:limit]
        first, last = connection.execute(
            sa.select(sa.func.min(entries.c.at), sa.func.max(entries.c.at)).where(
                entries.c.action == "reserve"
            )
        ).one()
        if first is None:
            return []
        width = max(1, -(-(last - first + 1) // points))
        # Grouped by account first: that is one pass over the entries, and far fewer rows to spread
        # over budgets.
        slot = (entries.c.at - first) // width
        by_slot = (
            sa.select(
                entries.c.account_id,
                slot.label("slot"),
                sa.func.sum(entries.c.epsilon).label("epsilon"),
            )
            .where(entries.c.action == "reserve")
            .group_by(entries.c.account_id, slot)
            .subquery()
        )
        query = (
            sa.select(
                budgets.c.id.label("budget_id"),
                by_slot.c.slot,
                sa.func.sum(by_slot.c.epsilon).label("epsilon"),
            )
            .join(
                accounts,
                sa.and_(*(budgets.c[name].in_(["", accounts.c[name]]) for name in PARTS)),
            )
            .join(by_slot, by_slot.c.account_id == accounts.c.id)
            .where(budgets.c.id.in_([row.id for row in rows]))
            .group_by(budgets.c.id, by_slot.c.slot)
        )
        spent = {row.id: np.zeros(points) for row in rows}
        for part in connection.execute(query):
            spent[part.budget_id][int(part.slot)] += epsilon_value(int(part.epsilon))
    at = np.asarray(first + width * np.arange(1, points + 1), dtype="datetime64[us]")
    return [
        Spending(Budget.of_row(row), at, np.cumsum(spent[row.id]))
        for row in rows
        if spent[row.id].any()
    ]


def _budgets_of(scope: Scope | None) -> sa.Select[Any]:
    named = {} if scope is None else {name: value for name, value in scope.parts.items() if value}
    return (
        sa.select(budgets, statements.c.statement)
        .join(statements, statements.c.id == budgets.c.statement_id)
        .where(*(budgets.c[name].in_(["", value]) for name, value in named.items()))
    )


def _accounts_of(scope: Scope | None) -> list[sa.ColumnElement[bool]]:
    return (
        []
        if scope is None
        else [accounts.c[name] == value for name, value in scope.parts.items() if value]
    )


def export_to(store: Store, path: str | Path, *, format: Format, overwrite: bool) -> int:
    """Write every entry to ``path``, whole or not at all.

    Args:
        store: the ledger's database.
        path: the file, in a folder that exists.
        format: "jsonl" (one JSON object per line) or "csv" (with a header).
        overwrite: whether a file that stands there may be replaced.

    Returns:
        Number of entries.

    Raises:
        InvalidInput: ``path`` is there already and may not be replaced, or is no plain file.
        WriteFailed: the file could not be written. Nothing is left half-written.
        LedgerUnavailable: the ledger cannot be read.
    """
    target = Path(path)
    check_replaceable(target, overwrite=overwrite)
    # Streamed, unlike core.files: the entries of a long-lived ledger need not fit into memory.
    try:
        descriptor, scratch = new_file_beside(target)
    except OSError as error:
        raise WriteFailed(
            f"{target}: expected a folder that can be written ({error.strerror})"
        ) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            written = write_entries(store, stream, format=format)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(target)
    except OSError as error:
        raise WriteFailed(
            f"{target}: could not be written whole ({error.strerror}); nothing is left of it"
        ) from error
    finally:
        scratch.unlink(missing_ok=True)
    return written


def write_entries(store: Store, stream: IO[str], *, format: Format) -> int:
    """Write every entry to an open text stream, and return their number, as ``export_to`` does."""
    if format not in ("jsonl", "csv"):
        raise UnknownName(f"format={format!r}: expected 'jsonl' or 'csv'")
    written = 0
    if format == "csv":
        table = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        table.writeheader()
        for row in _rows(store):
            table.writerow(row)
            written += 1
        return written
    for row in _rows(store):
        stream.write(json.dumps(row, separators=(",", ":")) + "\n")
        written += 1
    return written


def _rows(store: Store) -> Iterator[dict[str, Any]]:
    with store.read() as connection:
        top = read_tip(connection)
        previous = top.genesis
        for stored in stored_entries(connection):
            if isinstance(stored, MalformedEntry):
                raise CorruptLedger(
                    f"entry {stored.seq!r:.40} holds what no ledger writes; see `reticent "
                    "ledger verify`"
                )
            yield {
                **stored.entry._asdict(),
                "previous": previous.hex(),
                "digest": stored.digest.hex(),
            }
            previous = stored.digest
