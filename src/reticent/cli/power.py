"""`reticent demo power`: rows of a table to an untrusted server."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.demo import MARKER
from reticent.core.extras import require
from reticent.core.files import output_folder


class PowerData(StrEnum):
    """Tables that have a demonstration; all but adult need no file."""

    ADULT_SAMPLE = "adult-sample"
    ADULT = "adult"
    BREAST_CANCER = "breast-cancer"


def power(
    data: Annotated[
        PowerData,
        typer.Option(
            help="adult-sample and breast-cancer need no file; adult is read from "
            "$RETICENT_DATA, or downloaded from OpenML."
        ),
    ] = PowerData.ADULT_SAMPLE,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write; an earlier demonstration there is replaced."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of training. The noise of releases is never seeded.")
    ] = 0,
) -> None:
    """Private table rows to an untrusted server: encode by a public schema, release, learn; and two
    attacks.

    Writes index.html (open it), results.json, figure.png, card.md, the fitted bundle and the
    held-out rows. The privacy parameters are suggestions for looking around; a release of your
    own has to name its own.
    """
    torch = require("torch", extra="networks")

    from reticent.demos.power.chart import figure
    from reticent.demos.power.demo import PowerDemoSettings, run_demo, summary
    from reticent.demos.power.page import page
    from reticent.training.progress import bar

    target = out if out is not None else Path("runs") / f"power-{data.value}"
    torch.set_num_threads(1)  # networks this small only wait for a second thread
    with output_folder(target, marker=MARKER, overwrite=True) as folder:
        with bar() as report:
            outcome = run_demo(data.value, PowerDemoSettings(seed=seed), report=report)
        outcome.encoder.save(folder.path / "bundle")
        folder.write("held-out.csv", outcome.held_out)
        folder.write("card.md", outcome.encoder.card().to_markdown().encode())
        folder.write("figure.png", figure(outcome.results))
        folder.write("index.html", page(outcome).encode())
        folder.write(MARKER, json.dumps(outcome.results, indent=2, allow_nan=False).encode())
    typer.echo(summary(outcome.results))
    typer.echo(f"Open {target / 'index.html'}")
