"""`reticent fit`, and the commands that prepare it: `reticent methods` and `reticent schema`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.ledger import booking
from reticent.cli.options import (
    IgnoreColumns,
    Json,
    OptionalLedger,
    Overwrite,
    Principal,
    PublicRows,
    Subject,
)
from reticent.core.errors import InvalidInput


def fit(
    config: Annotated[
        Path,
        typer.Argument(
            help="TOML file: estimator, bundle, parameters, data. docs/command-line.md has one "
            "for each system."
        ),
    ],
    ledger: OptionalLedger = None,
    principal: Principal = "",
    subject: Subject = "",
    overwrite: Overwrite = False,
) -> None:
    """Fit the estimator that a TOML file describes, and write its bundle, whole or not at all.

    If a fit itself costs budget, the cost is booked in the ledger that is named. The command ends
    with the guarantee card, which the bundle holds too. Privacy parameters have no defaults. Paths
    in the file start from its folder.
    """
    from reticent.cli.fit_config import FitConfig, fitting
    from reticent.core.files import check_folder_replaceable
    from reticent.release.bundle import MARKER

    wanted = FitConfig.read(config)
    target = wanted.place(wanted.bundle)
    check_folder_replaceable(target, marker=MARKER, overwrite=overwrite)
    system, data = fitting(wanted)
    if ledger is not None and "ledger" not in inspect.signature(system.fit).parameters:
        raise InvalidInput(
            f"ledger: fit of a {type(system).__name__} costs nothing; its answers are booked by "
            "reticent release"
        )
    labels = () if data.labels is None else (data.labels,)
    with booking(ledger, principal, subject) as books:
        system.fit(data.inputs, *labels, **data.further, **books)
    written = system.save(target, overwrite=overwrite)
    typer.echo(system.card().to_markdown())
    typer.echo(f"written to {written}")


def methods(
    as_json: Json = False,
) -> None:
    """List every installed method: its name, what it protects, what it releases, its package.

    Packages add methods by an entry point in the group reticent.methods (docs/command-line.md). A
    method that cannot be loaded is named on standard error.
    """
    from reticent.systems.methods import find_methods

    found = find_methods()
    for problem in found.problems:
        typer.echo(f"warning: {problem}", err=True)
    if as_json:
        fields = ("name", "role", "summary", "protects", "releases", "origin")
        rows = [{field: getattr(method, field) for field in fields} for method in found.methods]
        typer.echo(json.dumps(rows, indent=2))
        return
    for method in found.methods:
        typer.echo(method.describe())


def schema(
    rows: PublicRows,
    output: Annotated[Path, typer.Option(help=".json file to write.")],
    ignore_column: IgnoreColumns = None,
    most_categories: Annotated[
        int, typer.Option(help="Most different words of a column that becomes categories.")
    ] = 50,
    buckets: Annotated[int, typer.Option(help="Buckets of a column with more words.")] = 256,
    overwrite: Overwrite = False,
) -> None:
    """Draft a public schema of a table: columns, ranges, categories.

    Never pass private rows: the schema shows ranges and categories of the values in the file. Read
    the draft and correct it. Ranges from the documentation of the data are better than ranges that
    were seen.
    """
    from reticent.cli.files import format_of
    from reticent.tables.batches import read_frame
    from reticent.tables.schema import TabularSchema

    format_of(output, ("json",))
    drafted = TabularSchema.from_frame(
        read_frame(rows, name="rows"),
        ignore=ignore_column or (),
        most_categories=most_categories,
        buckets=buckets,
    )
    drafted.write(output, overwrite=overwrite)
    for attribute in drafted.attributes:
        typer.echo(f"{attribute.name}: {attribute.kind}")
    typer.echo(f"{len(drafted.attributes)} attributes; written to {output}; read it before use")
