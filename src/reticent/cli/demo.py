"""`reticent demo`: a whole job from end to end, with a page to look at."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.certified import certified
from reticent.cli.knn import knn
from reticent.core.extras import require
from reticent.core.files import output_folder

app = typer.Typer(
    no_args_is_help=True,
    help="Demonstrations that end with a page to look at.",
    rich_markup_mode=None,
)

MARKER = "results.json"
"""A folder that holds this file was written by a demonstration, and may be replaced by one."""


class Data(StrEnum):
    """Data sets that have a demonstration; all but digits are read from the folder that
    RETICENT_DATA names.
    """

    DIGITS = "digits"
    MNIST = "mnist"
    FASHION = "fashion"
    UTKFACE = "utkface"


@app.callback()
def demonstrations() -> None:
    """Demonstrations that end with a page to look at."""


@app.command()
def posthoc(
    data: Annotated[
        Data, typer.Option(help="digits needs no file; the others are read from $RETICENT_DATA.")
    ] = Data.DIGITS,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write; an earlier demonstration there is replaced."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of training. The noise of releases is never seeded.")
    ] = 0,
) -> None:
    """Private pictures to an untrusted server: train, certify, calibrate, release, learn, attack.

    Writes index.html (open it), results.json, figure.png, card.md, the fitted bundle and the
    held-out pictures. The privacy parameters are suggestions for looking around; a release of
    your own has to name its own.
    """
    torch = require("torch", extra="networks")

    from reticent.cli.files import npy_content
    from reticent.datasets import load
    from reticent.demos.posthoc.demo import run_demo
    from reticent.demos.posthoc.figure import figure
    from reticent.demos.posthoc.page import page
    from reticent.demos.posthoc.settings import suggested
    from reticent.training.progress import bar

    target = out if out is not None else Path("runs") / f"posthoc-{data.value}"
    pictures = load(data.value)
    if data is Data.DIGITS:
        torch.set_num_threads(1)  # networks this small only wait for a second thread
    with output_folder(target, marker=MARKER, overwrite=True) as folder:
        with bar() as report:
            outcome = run_demo(pictures, suggested(data.value, seed=seed), report=report)
        outcome.encoder.save(folder.path / "bundle")
        folder.write("held-out.npy", npy_content(outcome.held_out))
        folder.write("card.md", outcome.encoder.card().to_markdown().encode())
        folder.write("figure.png", figure(outcome))
        folder.write("index.html", page(outcome).encode())
        folder.write(MARKER, json.dumps(outcome.results, indent=2, allow_nan=False).encode())
    typer.echo(f"Open {target / 'index.html'}")


app.command()(certified)
app.command()(knn)
