"""`reticent demo certified`: a model trained without noise, and labels that no single record can
change by much.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reticent.core.errors import MissingExtra
from reticent.core.extras import require
from reticent.core.files import output_folder

MARKER = "results.json"
"""A folder that holds this file was written by a demonstration, and may be replaced by one."""


class CertifiedData(StrEnum):
    """Data sets of the demonstration: blobs are generated, digits are bundled, the others are
    read from RETICENT_DATA.
    """

    BLOBS_CLOSE = "blobs-close"
    BLOBS = "blobs"
    DIGITS = "digits"
    PNEUMONIA = "pneumonia"
    IMDB = "imdb"


def certified(
    data: Annotated[
        CertifiedData,
        typer.Option(
            help="blobs are generated, digits need no file; the others are read from "
            "$RETICENT_DATA."
        ),
    ] = CertifiedData.BLOBS_CLOSE,
    epsilon: Annotated[
        float | None, typer.Option(help="Of one answer; by default one that suits the data.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write; an earlier demonstration there is replaced."),
    ] = None,
) -> None:
    """Labels from a model of private records: train, certify every number of changed records,
    release.

    Writes index.html (open it), figure.png (where matplotlib is installed), results.json, card.md,
    the queries and the fitted bundle, which is as private as the records. The privacy parameters
    are suggestions for looking around; a release of your own has to name its own.
    """
    from reticent.cli.files import npy_content
    from reticent.demos.certified.demo import run_certified_demo
    from reticent.demos.certified.page import figure, page
    from reticent.training.progress import bar

    target = out if out is not None else Path("runs") / f"certified-{data.value}"
    if data is CertifiedData.PNEUMONIA:
        # Features are computed one picture at a time, where a second thread only waits.
        require("torch", extra="networks").set_num_threads(1)
    with output_folder(target, marker=MARKER, overwrite=True) as folder:
        with bar() as report:
            outcome = run_certified_demo(data.value, epsilon=epsilon, report=report)
        outcome.classifier.save(folder.path / "bundle")
        folder.write("queries.npy", npy_content(outcome.held_out))
        folder.write("card.md", outcome.classifier.card().to_markdown().encode())
        left_out = ""
        try:
            folder.write("figure.png", figure(outcome))
        except MissingExtra as missing:
            left_out = f"figure.png is left out: {missing}"
        folder.write("index.html", page(outcome).encode())
        folder.write(MARKER, json.dumps(outcome.results, indent=2, allow_nan=False).encode())
    results = outcome.results
    typer.echo(
        f"released labels {results['accuracy_released']:.1%} right at epsilon "
        f"{results['epsilon']:g} each, "
        f"{results['accuracy_noise_free']:.1%} without protection"
    )
    if left_out:
        typer.echo(left_out)
    typer.echo(f"Open {target / 'index.html'}")
