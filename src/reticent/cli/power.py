"""`reticent demo power`: rows of a table to an untrusted server."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.demo import MARKER
from reticent.core.files import output_folder


class PowerData(StrEnum):
    """Tables that have a demonstration; breast-cancer needs no file."""

    BREAST_CANCER = "breast-cancer"
    ADULT = "adult"


def power(
    data: Annotated[
        PowerData, typer.Option(help="breast-cancer comes with scikit-learn; adult is read from $RETICENT_DATA, or OpenML.")
    ] = PowerData.BREAST_CANCER,
    out: Annotated[Path | None, typer.Option(help="Folder to write; an earlier demonstration there is replaced.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of training. The noise of releases is never seeded.")] = 0,
) -> None:
    """Private table rows to an untrusted server: encode by a public schema, release, learn; and the published mode inverted.

    Writes summary.md (also printed), results.json, card.md and the fitted bundle. The privacy parameters are suggestions
    for looking around; a release of your own has to name its own.
    """
    import torch

    from reticent.experiments.power_demo import run_demo, summary
    from reticent.training.progress import bar

    target = out if out is not None else Path("runs") / f"power-{data.value}"
    torch.set_num_threads(1)  # networks this small only wait for a second thread
    with output_folder(target, marker=MARKER, overwrite=True) as folder:
        with bar() as report:
            outcome = run_demo(data.value, seed=seed, report=report)
        outcome.encoder.save(folder.path / "bundle")
        folder.write("card.md", outcome.encoder.card().to_markdown().encode())
        folder.write("summary.md", summary(outcome.results).encode())
        folder.write(MARKER, json.dumps(outcome.results, indent=2, allow_nan=False).encode())
    typer.echo(summary(outcome.results))
    typer.echo(f"Written to {target}")
