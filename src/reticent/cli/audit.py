"""``reticent audit``: of a fitted system, and of a method on its owner's records."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.bundles import BundleFolder, TrustedKey, open_bundle, read_inputs
from reticent.core.errors import GuaranteeRefuted, InvalidInput
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


@audit_app.command()
def records(
    config: Annotated[
        Path,
        typer.Argument(
            help="TOML file as for fit: estimator, parameters, data. The bundle it names is not "
            "written."
        ),
    ],
    record: Annotated[
        int | None,
        typer.Option(
            min=0, help="Place of the record that the neighbour lacks; searched if absent."
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Fits, those of the search included.")] = 4_000,
    seconds: Annotated[float | None, typer.Option(help="Time limit.")] = 300.0,
    alpha: Annotated[
        float, typer.Option(help="Probability of refuting a claim that holds.")
    ] = 0.001,
    seed: Annotated[
        int | None, typer.Option(help="Of coins and search, never of noise; drawn if absent.")
    ] = None,
) -> None:
    """Test the claim of a method that protects training records, by many fits on two neighbours.

    The records of the file and a neighbour, which lacks one of them or has one more, are fitted in
    random order with real noise. A test that may be stopped at any time guesses which it was, by
    what is released. No budget is charged. The output is as private as the records.

    The exit status is 19 where the claim is refuted. An audit never proves a claim.
    """
    from reticent.audit.records import audit_records
    from reticent.cli.fit_config import FitConfig
    from reticent.cli.fit_data import check_arguments, read_data
    from reticent.cli.fit_estimator import estimator_of
    from reticent.training.progress import bar

    wanted = FitConfig.read(config)
    schema = wanted.schema_of_table()
    system = estimator_of(wanted, schema, bundled=False)
    check_arguments(system, wanted)
    data = read_data(wanted, schema)
    if data.labels is None:
        raise InvalidInput("data.labels, data.label_column: expected one of them, for an audit")
    unknown = [key for key in data.further if key not in ("public_X", "public_y", "public")]
    if unknown:
        raise InvalidInput(
            f"data.further.{unknown[0]}: an audit takes public_X, public_y and public alone"
        )
    with bar() as report:
        found = audit_records(
            system,
            data.inputs,
            data.labels,
            public_X=data.further.get("public_X", data.further.get("public")),
            public_y=data.further.get("public_y"),
            remove=record,
            runs=runs,
            seconds=seconds,
            alpha=alpha,
            seed=seed,
            report=report,
        )
    typer.echo(found.summary)
    if found.refuted:
        raise GuaranteeRefuted(
            f"estimator={found.system!r}: claims epsilon={found.claim.epsilon:g}, and gives away "
            "more"
        )


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
