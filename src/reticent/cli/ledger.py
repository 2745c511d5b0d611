"""Commands on a ledger: init, grant, preview, report, verify, export."""

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

from reticent.core.errors import BudgetExceeded, CorruptLedger, InvalidInput
from reticent.core.files import output_file
from reticent.core.guarantees import AddRemove, Adjacency, Guarantee, GuaranteeKind, Neighborhood, Replace
from reticent.core.norms import Norm

if TYPE_CHECKING:
    from rich.table import Table

    from reticent.accounting import Budget, Ledger, LedgerReport, Scope

ledger_app = typer.Typer(
    help="Budgets that cannot be overspent: who has spent how much of whose privacy, and what is left.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FIGURE_BYTES = 1_000_000


class AdjacencyName(StrEnum):
    """What neighbours are, on the command line."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"
    NEIGHBORHOOD = "neighborhood"


class KindName(StrEnum):
    """What is promised, on the command line."""

    DP = "dp"
    LIPSCHITZ = "lipschitz"


class ExportFormat(StrEnum):
    """Formats of an export."""

    JSONL = "jsonl"
    CSV = "csv"


LedgerUrl = Annotated[
    str, typer.Option("--ledger", envvar="RETICENT_LEDGER", help="A file, or sqlite:///FILE, or postgresql://USER@HOST/NAME.")
]
Principal = Annotated[str, typer.Option(help="The client that asks; empty for any.")]
Subject = Annotated[str, typer.Option(help="The person, record or data set whose privacy is spent; empty for any.")]
Bundle = Annotated[str, typer.Option(help="The bundle that answers; empty for any.")]
AdjacencyOption = Annotated[AdjacencyName, typer.Option(help="What neighbours are.")]
Records = Annotated[int, typer.Option(help="Records that neighbours differ in (add-remove, replace).")]
Metric = Annotated[Norm | None, typer.Option(help="Norm of a neighborhood.")]
Radius = Annotated[float | None, typer.Option(help="Radius of a neighborhood.")]
Space = Annotated[str, typer.Option(help="What the points of a neighborhood are, in plain words.")]
Kind = Annotated[KindName, typer.Option(help="Differential privacy, or Lipschitz (metric) privacy.")]


@ledger_app.command()
def init(ledger: LedgerUrl) -> None:
    """Make a ledger, or bring an older one up to date; what is booked stays."""
    from reticent.accounting import Ledger

    book = Ledger.create(ledger)
    try:
        report = book.report()
        typer.echo(f"ledger {report.ledger} at {book.store.name}: {report.entries} entries, {len(report.budgets)} budgets")
    finally:
        book.close()


@ledger_app.command()
def grant(
    ledger: LedgerUrl,
    epsilon: Annotated[float, typer.Option(help="Epsilon to add to the budget.")],
    delta: Annotated[float, typer.Option(help="Delta to add to the budget.")],
    adjacency: AdjacencyOption,
    principal: Principal = "",
    subject: Subject = "",
    subjects_from: Annotated[
        Path | None, typer.Option(help="CSV file that names subjects: each different one gets a budget of its own.")
    ] = None,
    subject_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --subjects-from: the column with the subjects.")
    ] = None,
    bundle: Bundle = "",
    records: Records = 1,
    metric: Metric = None,
    radius: Radius = None,
    space: Space = "embedding",
    kind: Kind = KindName.DP,
) -> None:
    """Give a scope a budget, or more of it. Kind and adjacency stay as they were first granted.

    With --subjects-from every subject in a column of a file is given as much, all of them or none.
    """
    total = _guarantee(epsilon, delta, adjacency, records, metric, radius, space, kind)
    if (subjects_from is None) != (subject_column is None) or (subject and subjects_from is not None):
        raise InvalidInput("subjects_from, subject_column: expected both or neither, and no --subject with them")
    if subjects_from is None or subject_column is None:
        with _opened(ledger) as book:
            typer.echo(book.grant(_scope(principal, subject, bundle), total).describe())
        return
    from reticent.systems.tables.files import read_names

    scopes = [_scope(principal, name, bundle) for name in read_names(subjects_from, subject_column, name="subjects_from")]
    with _opened(ledger) as book:
        budgets = book.grant_each(scopes, total)
    least = min(budgets, key=lambda budget: (budget.left_epsilon, budget.left_delta))
    typer.echo(f"granted to each of {len(budgets)} subject(s); the least is left to {least.describe()}")


@ledger_app.command()
def preview(
    ledger: LedgerUrl,
    epsilon: Annotated[float, typer.Option(help="Epsilon of one answer.")],
    delta: Annotated[float, typer.Option(help="Delta of one answer.")],
    adjacency: AdjacencyOption,
    answers: Annotated[int, typer.Option(help="Answers in the request.")] = 1,
    slack_delta: Annotated[float, typer.Option(help="Extra delta for optimal composition of the request's answers.")] = 0.0,
    principal: Principal = "",
    subject: Subject = "",
    bundle: Bundle = "",
    records: Records = 1,
    metric: Metric = None,
    radius: Radius = None,
    space: Space = "embedding",
    kind: Kind = KindName.DP,
) -> None:
    """Say whether a request would be answered now, and how large it could be. Spends nothing.

    The exit status is 12, as for the request itself, where it would be refused.
    """
    from reticent.accounting import PrivacyEvent
    from reticent.accounting.units import delta_value, epsilon_value

    guarantee = _guarantee(epsilon, delta, adjacency, records, metric, radius, space, kind)
    scope = _scope(principal, subject, bundle)
    event = PrivacyEvent("preview", guarantee)
    with _opened(ledger) as book:
        found = book.preview(scope, event, answers=answers, slack_delta=slack_delta)
    cost = f"epsilon={epsilon_value(found.charge.epsilon):g}, delta={delta_value(found.charge.delta):g} ({found.charge.rule})"
    verdict = "would be answered" if found.fits else "would be refused"
    typer.echo(f"{answers} answer(s) at {cost} {verdict}; at most {found.largest} answer(s) fit now")
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
    limit: Annotated[int, typer.Option(help="Accounts listed at most, the largest spenders first.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="JSON with whole units instead of tables.")] = False,
    plot: Annotated[Path | None, typer.Option(help=".png file for a figure of spending over time.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the figure if it exists.")] = False,
) -> None:
    """Show what is granted, spent and left, and by whom it was spent."""
    scope = _scope(principal, subject, bundle) if principal or subject or bundle else None
    with _opened(ledger) as book:
        found = book.report(scope, limit=limit)
        if plot is not None:
            from reticent.accounting.spending_figure import spending_png

            with output_file(plot, size=_FIGURE_BYTES, overwrite=overwrite) as put:
                put(spending_png(book.spending(scope)))
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
    anchor: Annotated[str | None, typer.Option(help="Anchor of an earlier report: nothing up to there may have changed.")] = None,
) -> None:
    """Recompute the chain and every total. The exit status is 17 where something does not match."""
    with _opened(ledger) as book:
        found = book.verify(anchor=anchor)
    if not found.ok:
        for problem in found.problems:
            typer.echo(problem, err=True)
        raise CorruptLedger(
            f"ledger: {len(found.problems)} thing(s) do not match its entries; restore it from a backup, release nothing"
        )
    typer.echo(f"{found.entries} entries in order; every total is the sum of its entries; anchor {found.anchor}")


@ledger_app.command()
def export(
    ledger: LedgerUrl,
    output: Annotated[str, typer.Option(help="File to write, or - for standard output.")],
    format_: Annotated[ExportFormat, typer.Option("--format", help="One JSON object per line, or a table.")] = ExportFormat.JSONL,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Write every entry with its digest."""
    from reticent.accounting.exports import write_entries

    with _opened(ledger) as book:
        if output == "-":
            write_entries(book.store, sys.stdout, format=format_.value)
            return
        written = book.export(output, format=format_.value, overwrite=overwrite)
    typer.echo(f"{written} entries written to {output}")


@contextmanager
def _opened(url: str) -> Iterator[Ledger]:
    from reticent.accounting import Ledger

    book = Ledger.open(url)
    try:
        yield book
    finally:
        book.close()


def _scope(principal: str, subject: str, bundle: str) -> Scope:
    from reticent.accounting import Scope

    return Scope(principal=principal, subject=subject, bundle=bundle)


def _guarantee(
    epsilon: float,
    delta: float,
    adjacency: AdjacencyName,
    records: int,
    metric: Norm | None,
    radius: float | None,
    space: str,
    kind: KindName,
) -> Guarantee:
    neighbours: Adjacency
    if adjacency is AdjacencyName.NEIGHBORHOOD:
        if metric is None or radius is None:
            raise InvalidInput("adjacency='neighborhood': expected --metric and --radius with it")
        neighbours = Neighborhood(metric, radius, space)
    elif metric is not None or radius is not None:
        raise InvalidInput(f"adjacency={adjacency.value!r}: expected neither --metric nor --radius with it")
    else:
        neighbours = AddRemove(records) if adjacency is AdjacencyName.ADD_REMOVE else Replace(records)
    kinds = {KindName.DP: GuaranteeKind.DIFFERENTIAL_PRIVACY, KindName.LIPSCHITZ: GuaranteeKind.LIPSCHITZ_PRIVACY}
    return Guarantee(epsilon, delta, neighbours, kinds[kind])


def _print_tables(found: LedgerReport) -> None:
    from rich.console import Console

    from reticent.accounting.statements import describe_statement

    console = Console()
    # Statements are long sentences and few: a letter in the table, the sentence below it.
    statements = sorted({budget.statement for budget in found.budgets})
    letters = {statement: chr(ord("a") + number % 26) * (1 + number // 26) for number, statement in enumerate(statements)}
    console.print(_budget_table(found, letters))
    for statement, letter in letters.items():
        console.print(f"{letter}: {describe_statement(statement)}", highlight=False, markup=False)
    console.print(_account_table(found))


def _budget_table(found: LedgerReport, letters: dict[str, str]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from reticent.accounting.units import delta_value, epsilon_value

    table = Table(title="Budgets, the tightest first")
    table.add_column("budget", overflow="fold")
    table.add_column("for")
    for name in ("granted ε", "spent ε", "left ε", "left", "left δ"):
        table.add_column(name, justify="right", no_wrap=True)
    for budget in found.budgets:
        table.add_row(
            *(escape(budget.scope.describe()), letters[budget.statement]),
            *(f"{epsilon_value(n):g}" for n in (budget.granted_epsilon, budget.spent_epsilon, budget.left_epsilon)),
            f"{budget.left_epsilon / budget.granted_epsilon:.0%}",
            f"{delta_value(budget.left_delta):g}",
        )
    return table


def _account_table(found: LedgerReport) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from reticent.accounting.units import delta_value, epsilon_value

    shown = f" ({len(found.accounts)} of {found.accounts_total})" if found.accounts_total > len(found.accounts) else ""
    table = Table(title=f"Spent by whom, on whom{shown}")
    table.add_column("account", overflow="fold")
    for name in ("ε", "δ", "answers", "calls", "open", "last (UTC)"):
        table.add_column(name, justify="right", no_wrap=True)
    for account in found.accounts:
        last = datetime.fromtimestamp(account.last_at / 1e6, UTC)
        table.add_row(
            escape(account.scope.describe()),
            *(f"{epsilon_value(account.spent_epsilon):g}", f"{delta_value(account.spent_delta):g}"),
            *(str(n) for n in (account.answers, account.reservations, account.reservations - account.commits)),
            last.strftime("%Y-%m-%d %H:%M"),
        )
    table.caption = "open: calls without a receipt, because they failed, crashed or are under way; they stay spent"
    return table


def _report_dict(found: LedgerReport) -> dict[str, Any]:
    def plain(budget: Budget) -> dict[str, Any]:
        values = asdict(budget)
        values["statement"] = json.loads(budget.statement)
        return {**values, "left_epsilon": budget.left_epsilon, "left_delta": budget.left_delta}

    accounts = [{**asdict(account), "statement": json.loads(account.statement)} for account in found.accounts]
    return {
        "ledger": found.ledger,
        "entries": found.entries,
        "anchor": found.anchor,
        "units": {"epsilon": 1e-6, "delta": 1e-12},
        "budgets": [plain(budget) for budget in found.budgets],
        "accounts": accounts,
        "accounts_total": found.accounts_total,
    }
