"""`reticent demo knn`: private pictures label public ones, and a student learns from the labels."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reticent.core.extras import require
from reticent.core.files import output_folder

MARKER = "results.json"
"""A folder that holds this file was written by a demonstration, and may be replaced by one."""


class KnnData(StrEnum):
    """Data sets of the demonstration; all but digits are read from the folder that RETICENT_DATA
    names.
    """

    DIGITS = "digits"
    MNIST = "mnist"
    FASHION = "fashion"


def knn(
    data: Annotated[
        KnnData, typer.Option(help="digits needs no file; the others are read from $RETICENT_DATA.")
    ] = KnnData.DIGITS,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write; an earlier demonstration there is replaced."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of training. Samples and noise are never seeded.")
    ] = 0,
) -> None:
    """Labels and a student model from private records, under one total for everything.

    Writes index.html (open it), figure.png, results.json, card.md and the student's bundle. The
    privacy parameters are suggestions for looking around; a release of your own has to name its
    own.
    """
    torch = require("torch", extra="networks")

    from reticent.datasets import load
    from reticent.demos.private_knn.demo import page, run_demo, suggested
    from reticent.training.progress import bar

    target = out if out is not None else Path("runs") / f"knn-{data.value}"
    pictures = load(data.value)
    torch.set_num_threads(1)  # records are embedded one by one, where a second thread only waits
    with output_folder(target, marker=MARKER, overwrite=True) as folder:
        with bar() as report:
            demo = run_demo(pictures, suggested(data.value, seed=seed), report=report)
        demo.student.save(folder.path / "bundle")
        folder.write("card.md", demo.card.to_markdown().encode())
        folder.write("figure.png", demo.figure)
        folder.write("index.html", page(demo).encode())
        folder.write(MARKER, json.dumps(demo.results, indent=2, allow_nan=False).encode())
    results = demo.results
    typer.echo(
        f"student {results['student']:.1%} right, labels {results['released right']:.1%} right, "
        f"epsilon {results['epsilon']:.3g} at delta {results['delta']:g}"
    )
    typer.echo(f"Open {target / 'index.html'}")
