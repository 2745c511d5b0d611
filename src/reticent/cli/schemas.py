"""`reticent schema`: a draft of a schema from rows that may be published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def schema(
    public_rows: Annotated[
        Path,
        typer.Argument(help="CSV, Parquet or Arrow file with rows that may be PUBLISHED."),
    ],
    output: Annotated[Path, typer.Option(help="JSON file to write.")],
    ignore_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column to leave out, such as a label; repeatable."),
    ] = None,
    most_categories: Annotated[
        int, typer.Option(help="Words of at most so many kinds are a list of categories.")
    ] = 50,
    buckets: Annotated[int, typer.Option(help="Of a column with words of more kinds.")] = 256,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
    ] = False,
) -> None:
    """Draft what is public about a table: columns, ranges, categories.

    Ranges and categories are taken from the values in the file, and whoever sees the schema sees
    them: never pass private rows. Read the draft and correct it; ranges that the documentation of
    the data states are better than ranges that were seen.
    """
    from reticent.tables.batches import read_frame
    from reticent.tables.schema import TabularSchema

    drafted = TabularSchema.from_frame(
        read_frame(public_rows, name="public_rows"),
        ignore=ignore_column or (),
        most_categories=most_categories,
        buckets=buckets,
    )
    drafted.write(output, overwrite=overwrite)
    for attribute in drafted.attributes:
        typer.echo(f"{attribute.name}: {attribute.kind}")
    typer.echo(f"{len(drafted.attributes)} attributes; written to {output}; read it before use")
