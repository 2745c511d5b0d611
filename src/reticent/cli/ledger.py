"""Commands on a ledger: init, grant, preview, report, verify, export. Those of its operator are
in ``ledger_care``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli.adjacencies import (
    AdjacencyOf,
    AdjacencyOption,
    DataSet,
    Identity,
    Kind,
    KindName,
    Metric,
    Radius,
    Records,
    Space,
    UnitOption,
    stated_guarantee,
)
from reticent.core.errors import BudgetExceeded, CorruptLedger, InvalidInput
from reticent.core.files import output_file
from reticent.core.guarantees import Unit

if TYPE_CHECKING:
    from rich.table import Table

    from reticent.core import Scope
    from reticent.ledger import Budget, Ledger, LedgerReport

ledger_app = typer.Typer(
    help="Budgets that cannot be overspent: who has spent how much of whose privacy, and what "
    "is left.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FIGURE_BYTES = 1_000_000


class ExportFormat(StrEnum):
    """Formats of an export."""

    JSONL = "jsonl"
    CSV = "csv"


LedgerUrl = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="RETICENT_LEDGER",
        help="A file, or sqlite:///FILE, or postgresql://USER@HOST/NAME.",
    ),
]
Principal = Annotated[str, typer.Option(help="The client that asks; empty for any.")]
Subject = Annotated[
    str, typer.Option(help="The person, record or data set whose privacy is spent; empty for any.")
]
Bundle = Annotated[str, typer.Option(help="The bundle that answers; empty for any.")]


@ledger_app.command()
def init(
    ledger: LedgerUrl,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="Of a new ledger: what requests must name, of principal, subject, bundle; "
            "repeatable.",
        ),
    ] = None,
    require_nothing: Annotated[
        bool,
        typer.Option("--require-nothing", help="Of a new ledger: they may leave out anything."),
    ] = False,
) -> None:
    """Make a ledger where there is none; what is booked stays, and so does its
    policy.

    Unless told otherwise every request to a new ledger must name its subject, and a budget must
    name it too.
    """
    from reticent.ledger import Ledger

    if require and require_nothing:
        raise InvalidInput("require, require_nothing: expected one of them")
    book = Ledger.create(ledger, required=() if require_nothing else tuple(require or ("subject",)))
    try:
        report = book.report()
        typer.echo(
            f"ledger {report.ledger} at {book.store.name}: {report.entries} entries, "
            f"{len(report.budgets)} budgets"
        )
        typer.echo(f"{report.policy.describe()}; its anchor is kept at {book.anchor_file().path}")
    finally:
        book.close()


@ledger_app.command()
def grant(
    ledger: LedgerUrl,
    epsilon: Annotated[float, typer.Option(help="Epsilon to add to the budget.")],
    delta: Annotated[float, typer.Option(help="Delta to add to the budget.")],
    adjacency_of: AdjacencyOf = None,
    adjacency: AdjacencyOption = None,
    principal: Principal = "",
    subject: Subject = "",
    subjects_from: Annotated[
        Path | None,
        typer.Option(
            help="CSV file that names subjects: each different one gets a budget of its own."
        ),
    ] = None,
    subject_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --subjects-from: the column with the subjects."),
    ] = None,
    bundle: Bundle = "",
    records: Records = 1,
    unit: UnitOption = Unit.RECORD,
    data_set: DataSet = "",
    metric: Metric = None,
    radius: Radius = None,
    space: Space = "embedding",
    identity: Identity = "",
    kind: Kind = KindName.DP,
) -> None:
    """Give a scope a budget, or more of it. Kind and adjacency stay as they were first granted.

    With --subjects-from every subject in a column of a file is given as much, all of them or none.
    """
    total = stated_guarantee(
        epsilon,
        delta,
        adjacency_of=adjacency_of,
        adjacency=adjacency,
        records=records,
        unit=unit,
        data_set=data_set,
        metric=metric,
        radius=radius,
        space=space,
        identity=identity,
        kind=kind,
    )
    if (subjects_from is None) != (subject_column is None) or (
        subject and subjects_from is not None
    ):
        raise InvalidInput(
            "subjects_from, subject_column: expected both or neither, and no --subject with them"
        )
    if subjects_from is None or subject_column is None:
        with opened(ledger) as book:
            typer.echo(book.grant(_scope(principal, subject, bundle), total).describe())
        return
    from reticent.tables.files import read_names

    scopes = [
        _scope(principal, name, bundle)
        for name in read_names(subjects_from, subject_column, name="subjects_from")
    ]
    with opened(ledger) as book:
        budgets = book.grant_each(scopes, total)
    least = min(budgets, key=lambda budget: (budget.left_epsilon, budget.left_delta))
    typer.echo(
        f"granted to each of {len(budgets)} subject(s); the least is left to {least.describe()}"
    )


@ledger_app.command()
def preview(
    ledger: LedgerUrl,
    epsilon: Annotated[float, typer.Option(help="Epsilon of one answer.")],
    delta: Annotated[float, typer.Option(help="Delta of one answer.")],
    adjacency_of: AdjacencyOf = None,
    adjacency: AdjacencyOption = None,
    answers: Annotated[int, typer.Option(help="Answers in the request.")] = 1,
    slack_delta: Annotated[
        float, typer.Option(help="Extra delta for optimal composition of the request's answers.")
    ] = 0.0,
    principal: Principal = "",
    subject: Subject = "",
    bundle: Bundle = "",
    records: Records = 1,
    unit: UnitOption = Unit.RECORD,
    data_set: DataSet = "",
    metric: Metric = None,
    radius: Radius = None,
    space: Space = "embedding",
    identity: Identity = "",
    kind: Kind = KindName.DP,
) -> None:
    """Say whether a request would be answered now, and how large it could be. Spends nothing.

    The exit status is 12, as for the request itself, where it would be refused.
    """
    from reticent.accounting import PrivacyEvent
    from reticent.ledger.charges import delta_value, epsilon_value

    guarantee = stated_guarantee(
        epsilon,
        delta,
        adjacency_of=adjacency_of,
        adjacency=adjacency,
        records=records,
        unit=unit,
        data_set=data_set,
        metric=metric,
        radius=radius,
        space=space,
        identity=identity,
        kind=kind,
    )
    scope = _scope(principal, subject, bundle)
    event = PrivacyEvent("preview", guarantee)
    with opened(ledger) as book:
        found = book.preview(scope, event, answers=answers, slack_delta=slack_delta)
    cost = (
        f"epsilon={epsilon_value(found.charge.epsilon):g}, "
        f"delta={delta_value(found.charge.delta):g} ({found.charge.rule})"
    )
    verdict = "would be answered" if found.fits else "would be refused"
    typer.echo(
        f"{answers} answer(s) at {cost} {verdict}; at most {found.largest} answer(s) fit now"
    )
    for budget in found.budgets:
        typer.echo(f"  {budget.describe()}")
    if not found.fits:
        raise typer.Exit(BudgetExceeded.code)


@ledger_app.command()
def report(
    ledger: LedgerUrl,
    principal: Principal = "",
    subject: Subject = "",
    bundle: Bundle = "",
    limit: Annotated[
        int, typer.Option(help="Accounts listed at most, the largest spenders first.")
    ] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON with whole units instead of tables.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help=".png file for a figure of spending over time.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the figure if it exists.")
    ] = False,
) -> None:
    """Show what is granted, spent and left, and by whom it was spent."""
    scope = _scope(principal, subject, bundle) if principal or subject or bundle else None
    with opened(ledger) as book:
        found = book.report(scope, limit=limit)
        if plot is not None:
            from reticent.plots import budget, empty_drawing, png

            drawing = empty_drawing(8, 4.5)
            budget(drawing.add_subplot(), book.spending(scope))
            with output_file(plot, size=_FIGURE_BYTES, overwrite=overwrite) as put:
                put(png(drawing, dpi=150))
    if as_json:
        typer.echo(json.dumps(_report_dict(found), indent=2))
        return
    _print_tables(found)
    typer.echo(f"{found.entries} entries; anchor {found.anchor}")
    if plot is not None:
        typer.echo(f"figure written to {plot}")


@ledger_app.command()
def verify(
    ledger: LedgerUrl,
    anchor: Annotated[
        str | None,
        typer.Option(help="Anchor of an earlier report: nothing up to there may have changed."),
    ] = None,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(
            help="A client's receipt, as JSON or in a released .npz file: its entry must be "
            "there. May be repeated."
        ),
    ] = None,
) -> None:
    """Recompute the chain and every total, and compare them with the anchor and with receipts.

    The exit status is 17 where something does not match.
    """
    from reticent.cli.receipts import read_receipt
    from reticent.ledger import Ledger
    from reticent.ledger.store import Store

    receipts = [read_receipt(path, name="receipt") for path in receipt or ()]
    store = Store(ledger)
    try:
        store.check()
        # Not opened as for a request: a ledger that is older than its anchor is what this is to
        # tell.
        found = Ledger(store).verify(anchor=anchor, receipts=receipts)
    finally:
        store.close()
    if not found.ok:
        for problem in found.problems:
            typer.echo(problem, err=True)
        raise CorruptLedger(
            f"ledger: {len(found.problems)} thing(s) do not match its entries or its anchor; "
            "release nothing. "
            "`reticent ledger restore` puts a backup in its place and says what that loses"
        )
    typer.echo(
        f"{found.entries} entries in order; every total is the sum of its entries; anchor "
        f"{found.anchor}"
    )


@ledger_app.command()
def export(
    ledger: LedgerUrl,
    output: Annotated[str, typer.Option(help="File to write, or - for standard output.")],
    format_: Annotated[
        ExportFormat, typer.Option("--format", help="One JSON object per line, or a table.")
    ] = ExportFormat.JSONL,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it exists.")
    ] = False,
) -> None:
    """Write every entry with its digest."""
    from reticent.ledger.reports import write_entries

    with opened(ledger) as book:
        if output == "-":
            write_entries(book.store, sys.stdout, format=format_.value)
            return
        written = book.export(output, format=format_.value, overwrite=overwrite)
    typer.echo(f"{written} entries written to {output}")


@contextmanager
def opened(url: str) -> Iterator[Ledger]:
    """The ledger at ``url``, closed again afterwards."""
    from reticent.ledger import Ledger

    book = Ledger.open(url)
    try:
        yield book
    finally:
        book.close()


def _scope(principal: str, subject: str, bundle: str) -> Scope:
    from reticent.core import Scope

    return Scope(principal=principal, subject=subject, bundle=bundle)


def _print_tables(found: LedgerReport) -> None:
    from rich.console import Console

    from reticent.ledger.charges import describe_statement

    console = Console()
    # Statements are long sentences and few: a letter in the table, the sentence below it.
    statements = sorted({budget.statement for budget in found.budgets})
    letters = {
        statement: chr(ord("a") + number % 26) * (1 + number // 26)
        for number, statement in enumerate(statements)
    }
    console.print(_budget_table(found, letters))
    for statement, letter in letters.items():
        console.print(f"{letter}: {describe_statement(statement)}", highlight=False, markup=False)
    console.print(_account_table(found))


def _budget_table(found: LedgerReport, letters: dict[str, str]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from reticent.ledger.charges import delta_value, epsilon_value

    table = Table(title="Budgets, the tightest first")
    table.add_column("budget", overflow="fold")
    table.add_column("for")
    for name in ("granted ε", "spent ε", "left ε", "left", "left δ"):
        table.add_column(name, justify="right", no_wrap=True)
    for budget in found.budgets:
        table.add_row(
            *(escape(budget.scope.describe()), letters[budget.statement]),
            *(
                f"{epsilon_value(n):g}"
                for n in (budget.granted_epsilon, budget.spent_epsilon, budget.left_epsilon)
            ),
            f"{budget.left_epsilon / budget.granted_epsilon:.0%}",
            f"{delta_value(budget.left_delta):g}",
        )
    return table


def _account_table(found: LedgerReport) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from reticent.ledger.charges import delta_value, epsilon_value

    shown = (
        f" ({len(found.accounts)} of {found.accounts_total})"
        if found.accounts_total > len(found.accounts)
        else ""
    )
    table = Table(title=f"Spent by whom, on whom{shown}")
    table.add_column("account", overflow="fold")
    for name in ("ε", "δ", "answers", "calls", "open", "last (UTC)"):
        table.add_column(name, justify="right", no_wrap=True)
    for account in found.accounts:
        last = datetime.fromtimestamp(account.last_at / 1e6, UTC)
        table.add_row(
            escape(account.scope.describe()),
            *(f"{epsilon_value(account.spent_epsilon):g}", f"{delta_value(account.spent_delta):g}"),
            *(
                str(n)
                for n in (
                    account.answers,
                    account.reservations,
                    account.reservations - account.commits,
                )
            ),
            last.strftime("%Y-%m-%d %H:%M"),
        )
    table.caption = (
        "open: calls without a receipt, because they failed, crashed or are under "
        "way; they stay spent"
    )
    return table


def _report_dict(found: LedgerReport) -> dict[str, Any]:
    def plain(budget: Budget) -> dict[str, Any]:
        values = asdict(budget)
        values["statement"] = json.loads(budget.statement)
        return {**values, "left_epsilon": budget.left_epsilon, "left_delta": budget.left_delta}

    accounts = [
        {**asdict(account), "statement": json.loads(account.statement)}
        for account in found.accounts
    ]
    return {
        "ledger": found.ledger,
        "entries": found.entries,
        "anchor": found.anchor,
        "required": list(found.policy.required),
        "units": {"epsilon": 1e-6, "delta": 1e-12},
        "budgets": [plain(budget) for budget in found.budgets],
        "accounts": accounts,
        "accounts_total": found.accounts_total,
    }
