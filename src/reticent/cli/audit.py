"""``reticent audit bundle``: the audit on somebody's own fitted system."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.bundles import BundleFolder, TrustedKey, open_bundle, read_inputs
from reticent.core.errors import GuaranteeRefuted
from reticent.core.files import output_file

if TYPE_CHECKING:
    from reticent.audit.fitted import FittedAudit

audit_app = typer.Typer(
    help="Measure what a fitted system gives away, against what it claims.", no_args_is_help=True
)

_PAGE_ROOM = 2**18


@audit_app.callback()
def audit() -> None:
    """Measure what a fitted system gives away, against what it claims."""


@audit_app.command()
def bundle(
    folder: BundleFolder,
    data: Annotated[
        Path,
        typer.Option(
            help="Rows to look for neighbours around: .npy, for rows of a table also .csv; as "
            "for release.",
        ),
    ],
    output: Annotated[Path | None, typer.Option(help=".html file to write the audit to.")] = None,
    runs: Annotated[int, typer.Option(help="Runs on each neighbour of each pair.")] = 200_000,
    confidence: Annotated[
        float, typer.Option(help="Probability that the bounds hold, of all pairs together.")
    ] = 0.999,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the audit's noise; drawn where it is not given.")
    ] = None,
    ignore_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column of the CSV file that is not read."),
    ] = None,
    trusted_key: TrustedKey = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
    ] = False,
) -> None:
    """A lower confidence bound on the epsilon of a bundle, beside the epsilon that it claims.

    The bundle's own mechanism is run many times on neighbours that are found around the rows, and
    on the worst pair that is known of it. The answers are thrown away: no budget is charged. They
    are drawn with seeded noise by the code of the release. What is shown is as private as the
    bundle and the rows.

    The exit status is 19 where the claim is refuted. An audit never proves a claim.
    """
    from reticent.audit.fitted import audit_fitted, auditable_query
    from reticent.audit.page import audit_page
    from reticent.training.progress import bar

    system = open_bundle(folder, trusted_key)
    auditable_query(system)  # before the rows are read
    rows, _ = read_inputs(
        data, system, ignore=ignore_column or (), subject_column=None, name="data"
    )
    chosen = secrets.randbelow(2**63) if seed is None else seed
    with bar() as report:
        found = audit_fitted(
            system,
            rows,
            runs=runs,
            confidence=confidence,
            seed=chosen,
            report=report,
        )
    if output is not None:
        with output_file(output, size=_PAGE_ROOM, overwrite=overwrite) as put:
            put(audit_page(found).encode())
    _print(found)
    if output is not None:
        typer.echo(f"written to {output}")
    if found.refuted:
        raise GuaranteeRefuted(f"bundle={str(folder)!r}: {found.verdict}")


def _print(found: FittedAudit) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("neighbours", "lower bound on epsilon", "confidence", title=found.system)
    for pair in found.pairs:
        result = pair.result
        table.add_row(pair.name, f"{result.epsilon_lower:.4g}", f"{result.confidence:.6g}")
    Console().print(table)
    typer.echo(f"claim: {found.claim.describe()}")
    typer.echo(f"runs: {found.runs} on each neighbour; seed {found.seed}; no budget was charged")
    for words in found.not_examined:
        typer.echo(f"not examined: {words}")
    typer.echo(found.verdict)
