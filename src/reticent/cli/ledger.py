"""Commands on a ledger, for its clients and for its operator (policy, backup, restore)."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from reticent.cli.neighbours import NeighboursOption, guarantee_for, statement
from reticent.cli.options import (
    BundleName,
    Delta,
    Epsilon,
    Json,
    LedgerUrl,
    Overwrite,
    Principal,
    Subject,
    SubjectColumn,
    group,
)
from reticent.core.errors import BudgetExceeded, CorruptLedger, InvalidInput
from reticent.core.files import output_file
from reticent.core.guarantees import Guarantee

if TYPE_CHECKING:
    from rich.table import Table

    from reticent.core import Scope
    from reticent.ledger import Budget, Ledger, LedgerReport

ledger_app = group(
    "Keep budgets that cannot be overspent: who has spent how much of whose privacy, and what is "
    "left."
)

_FIGURE_BYTES = 1_000_000


Require = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PART",
        help="Part that every request must name: principal, subject or bundle. May be repeated.",
    ),
]
RequireNothing = Annotated[
    bool, typer.Option("--require-nothing", help="Let requests leave out any part.")
]
ChargeLost = Annotated[
    bool | None,
    typer.Option(
        "--charge-lost/--forget-lost",
        help="Charge every budget with all that the lost entries spent, or give it back. Giving "
        "back is right only if nothing of it was released.",
    ),
]


ExportFormat = Literal["jsonl", "csv"]


@ledger_app.command()
def init(
    ledger: LedgerUrl, require: Require = None, require_nothing: RequireNothing = False
) -> None:
    """Make a ledger if there is none. An existing ledger keeps its entries and its policy.

    By default every request to a new ledger must name its subject, and a budget must name it too.
    """
    from reticent.ledger import Ledger

    _check_required(require, require_nothing)
    required = () if require_nothing else tuple(require or ("subject",))
    with closing(Ledger.create(ledger, required=required)) as book:
        report = book.report()
        typer.echo(
            f"ledger {report.ledger} at {book.store.name}: {report.entries} entries, "
            f"{len(report.budgets)} budgets"
        )
        typer.echo(f"{report.policy.describe()}; its anchor is kept at {book.anchor_file().path}")


@ledger_app.command()
def grant(
    ledger: LedgerUrl,
    epsilon: Epsilon,
    delta: Delta,
    neighbours: NeighboursOption,
    principal: Principal = "",
    subject: Subject = "",
    bundle: BundleName = "",
    subjects_from: Annotated[
        Path | None,
        typer.Option(
            metavar="ROWS",
            help="CSV, Parquet or Arrow file that names subjects. Each different one gets a "
            "budget of its own.",
        ),
    ] = None,
    subject_column: SubjectColumn = None,
) -> None:
    """Give a scope a budget, or more of it. Kind and adjacency stay as they were first granted.

    With --subjects-from every subject in --subject-column of a file gets this amount, all of them
    or none.
    """
    total = guarantee_for(neighbours, epsilon, delta)
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
    from reticent.tables.batches import names_in

    scopes = [
        _scope(principal, name, bundle)
        for name in names_in(subjects_from, subject_column, name="subjects_from")
    ]
    with opened(ledger) as book:
        budgets = book.grant_each(scopes, total)
    least = min(budgets, key=lambda budget: (budget.left_epsilon, budget.left_delta))
    typer.echo(
        f"granted to each of {len(budgets)} subject(s); the least is left to {least.describe()}"
    )


@ledger_app.command()
def lower(
    ledger: LedgerUrl,
    epsilon: Annotated[float | None, typer.Option(help="Epsilon to take back at most.")] = None,
    delta: Annotated[float | None, typer.Option(help="Delta to take back at most.")] = None,
    principal: Principal = "",
    subject: Subject = "",
    bundle: BundleName = "",
) -> None:
    """Take back what is left of a budget, or a part of it.

    Without amounts the budget is frozen: nothing more is charged to it until it is granted more.
    Spent budget stays spent. Budget that is leased to a process counts as spent.
    """
    with opened(ledger) as book:
        found = book.lower(_scope(principal, subject, bundle), epsilon=epsilon, delta=delta)
    typer.echo(found.describe())


@ledger_app.command()
def preview(
    ledger: LedgerUrl,
    epsilon: Epsilon,
    delta: Delta,
    neighbours: NeighboursOption,
    answers: Annotated[int, typer.Option(help="Answers in the request.")] = 1,
    slack_delta: Annotated[
        float, typer.Option(help="Extra delta for optimal composition of the request's answers.")
    ] = 0.0,
    principal: Principal = "",
    subject: Subject = "",
    bundle: BundleName = "",
) -> None:
    """Say whether a request would be answered now, and how large it could be. Spend nothing.

    Epsilon and delta are those of one answer. If the request would be refused, the exit status is
    12, as for the request itself.
    """
    from reticent.accounting import PrivacyEvent
    from reticent.ledger.charges import delta_value, epsilon_value

    guarantee = guarantee_for(neighbours, epsilon, delta)
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
    bundle: BundleName = "",
    limit: Annotated[
        int, typer.Option(help="Most accounts to list, the largest spenders first.")
    ] = 20,
    as_json: Json = False,
    output: Annotated[
        Path | None, typer.Option(help=".svg file for a chart of spending over time.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Show the granted, spent and remaining budgets, and who spent them."""
    if output is not None:
        from reticent.cli.files import format_of

        format_of(output, ("svg",))
    scope = _scope(principal, subject, bundle) if principal or subject or bundle else None
    with opened(ledger) as book:
        found = book.report(scope, limit=limit)
        if output is not None:
            from reticent.plots import spending_chart

            chart = spending_chart(book.spending(scope))
            if chart is not None:
                with output_file(output, size=_FIGURE_BYTES, overwrite=overwrite) as put:
                    put(chart.alone().encode())
    if as_json:
        typer.echo(json.dumps(_report_dict(found), indent=2))
        return
    _print_tables(found)
    typer.echo(f"{found.entries} entries; anchor {found.anchor}")
    if output is not None:
        typer.echo("nothing was spent yet: no chart" if chart is None else f"written to {output}")


@ledger_app.command()
def verify(
    ledger: LedgerUrl,
    anchor: Annotated[
        str | None,
        typer.Option(help="Anchor of an earlier report. Nothing up to there may have changed."),
    ] = None,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(
            help="Client's receipt, as JSON or in a released .npz file. Its entry must be "
            "there. May be repeated."
        ),
    ] = None,
) -> None:
    """Recompute the chain and every total, and compare them with the anchor and with receipts.

    The exit status is 17 if something does not match.
    """
    from reticent.cli.files import read_receipt

    receipts = [read_receipt(path, name="receipt") for path in receipt or ()]
    # Not opened as for a request: a ledger that is older than its anchor has to be reported.
    with _unchecked(ledger) as book:
        found = book.verify(anchor=anchor, receipts=receipts)
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
    output: Annotated[
        str, typer.Option(help=".jsonl or .csv file to write, or - for standard output.")
    ],
    format_: Annotated[
        ExportFormat,
        typer.Option("--format", help="Format of standard output: JSON lines, or a table."),
    ] = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Write every entry with its digest."""
    from reticent.cli.files import format_of
    from reticent.ledger.reports import write_entries

    kind = format_ if output == "-" else format_of(Path(output), get_args(ExportFormat))
    with opened(ledger) as book:
        if output == "-":
            write_entries(book.store, sys.stdout, format=kind)  # type: ignore[arg-type]
            return
        written = book.export(output, format=kind, overwrite=overwrite)  # type: ignore[arg-type]
    typer.echo(f"{written} entries written to {output}")


@ledger_app.command()
def policy(
    ledger: LedgerUrl, require: Require = None, require_nothing: RequireNothing = False
) -> None:
    """Show or set the parts that every request must name.

    A budget that names them too must cover the request.
    """
    _check_required(require, require_nothing)
    with opened(ledger) as book:
        found = book.set_policy(require or ()) if require or require_nothing else book.policy
    typer.echo(found.describe())


@ledger_app.command()
def backup(
    ledger: LedgerUrl,
    output: Annotated[Path, typer.Option(help="File to write.")],
    overwrite: Overwrite = False,
) -> None:
    """Copy a ledger's file while others write to it, and verify the copy."""
    from reticent.ledger.backups import backup as copy

    with opened(ledger) as book:
        anchor = copy(book.store, output, overwrite=overwrite)
    typer.echo(f"backup written to {output}; anchor {anchor}")


@ledger_app.command()
def restore(
    ledger: LedgerUrl,
    source: Annotated[Path, typer.Option("--from", help="The backup.")],
    charge_lost: ChargeLost = None,
) -> None:
    """Put a backup in the ledger's place.

    If the backup is older than a state of the ledger that was seen, choose what happens to the lost
    charges.
    """
    from reticent.ledger.backups import restore as put_back
    from reticent.ledger.store import Store

    with closing(Store(ledger)) as store:
        done = put_back(store, source, charge_lost=charge_lost)
    aside = f"; what stood there is at {done.aside}" if done.aside is not None else ""
    lost = f"; {done.lost} entries are lost, {_charged(done.charged)}" if done.lost else ""
    typer.echo(f"restored to anchor {done.anchor}{lost}{aside}")


@ledger_app.command(name="accept-rollback")
def accept_rollback(ledger: LedgerUrl, charge_lost: ChargeLost = None) -> None:
    """Go on, as the operator, with a ledger that is older than a state that was seen.

    One entry records this for good.
    """
    if charge_lost is None:
        raise InvalidInput(
            "charge_lost: expected --charge-lost or --forget-lost; what is lost is not decided "
            "by default"
        )
    with _unchecked(ledger) as book:
        charged = book.accept_rollback(charge=charge_lost)
        typer.echo(f"accepted; {_charged(charged)}; anchor {book.anchor().text}")


@ledger_app.command()
def adopt(ledger: LedgerUrl) -> None:
    """Go on, as the operator, with a ledger whose anchor is missing here.

    One entry records this for good. Only the operator can tell whether this is the newest copy.
    Compare it first with an anchor or receipts that were kept elsewhere:
    `reticent ledger verify --anchor`, `--receipt`.
    """
    with _unchecked(ledger) as book:
        typer.echo(f"adopted; anchor {book.adopt().text}, kept at {book.anchor_file().path}")


@contextmanager
def opened(url: str) -> Iterator[Ledger]:
    """Open the ledger at ``url``, and close it afterwards."""
    from reticent.ledger import Ledger

    with closing(Ledger.open(url)) as book:
        yield book


@contextmanager
def booking(
    url: str | None, principal: str, subject: str, bundle: str = ""
) -> Iterator[dict[str, Any]]:
    """Open a ledger for a release, and yield its arguments ``ledger`` and ``scope``, or none.

    Raises:
        InvalidInput: a client or subject, and no ledger.
    """
    if url is None:
        if principal or subject:
            raise InvalidInput("principal, subject: expected together with --ledger")
        yield {}
        return
    with opened(url) as book:
        yield {"ledger": book, "scope": _scope(principal, subject, bundle)}


def _scope(principal: str, subject: str, bundle: str) -> Scope:
    from reticent.core import Scope

    return Scope(principal=principal, subject=subject, bundle=bundle)


def _print_tables(found: LedgerReport) -> None:
    from rich.console import Console

    from reticent.ledger.charges import describe_statement

    console = Console()
    # Statements are few and long, so the table has a letter and the sentence stands below it.
    statements = sorted({budget.statement for budget in found.budgets})
    letters = {
        text: chr(ord("a") + number % 26) * (1 + number // 26)
        for number, text in enumerate(statements)
    }
    console.print(_budget_table(found, letters))
    for text, letter in letters.items():
        stated = statement(Guarantee.from_dict({"epsilon": 1.0, "delta": 0.0, **json.loads(text)}))
        said = f"{letter}: {describe_statement(text)} (--neighbours {shlex.quote(stated)})"
        console.print(said, highlight=False, markup=False, soft_wrap=True)
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
            f"{budget.share_left:.0%}",
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


def _check_required(require: list[str] | None, require_nothing: bool) -> None:
    if require and require_nothing:
        raise InvalidInput("require, require_nothing: expected one of them")


def _charged(units: tuple[int, int]) -> str:
    from reticent.ledger.charges import delta_value, epsilon_value

    if units == (0, 0):
        return "nothing is charged for them"
    return (
        f"every budget is charged epsilon={epsilon_value(units[0]):g}, "
        f"delta={delta_value(units[1]):g} for them at most"
    )


@contextmanager
def _unchecked(url: str) -> Iterator[Ledger]:
    """Open a ledger that may be older than its anchor, and close it afterwards."""
    from reticent.ledger import Ledger
    from reticent.ledger.store import Store

    with closing(Store(url)) as store:
        store.check()
        yield Ledger(store)
