"""`reticent fit`: a TOML file names an estimator, its parts and the data, and becomes a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def fit(
    config: Annotated[
        Path,
        typer.Argument(
            help="TOML file: estimator, bundle, parameters, data; docs/command-line.md has one "
            "for each system."
        ),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the bundle if it exists.")
    ] = False,
) -> None:
    """Fit the estimator that a TOML file describes, and write its bundle, whole or not at all.

    Ends with the guarantee card, which the bundle holds too. Privacy parameters have no defaults.
    Paths in the file start from its folder.
    """
    from reticent.cli.fit_config import FitConfig
    from reticent.cli.fit_data import check_arguments, read_data
    from reticent.cli.fit_estimator import estimator_of
    from reticent.core.files import check_folder_replaceable
    from reticent.release.bundle import MARKER

    wanted = FitConfig.read(config)
    target = wanted.place(wanted.bundle)
    check_folder_replaceable(target, marker=MARKER, overwrite=overwrite)
    schema = wanted.schema_of_table()
    system = estimator_of(wanted, schema)
    check_arguments(system, wanted)
    data = read_data(wanted, schema)
    labels = () if data.labels is None else (data.labels,)
    system.fit(data.inputs, *labels, **data.further)
    written = system.save(target, overwrite=overwrite)
    typer.echo(system.card().to_markdown())
    typer.echo(f"written to {written}")
