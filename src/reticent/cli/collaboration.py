"""`reticent demo collaboration`: a device, a server and an auditor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.demo import MARKER
from reticent.core.files import output_folder


def collaboration(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write; an earlier demonstration there is replaced."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of training. The noise of releases is never seeded.")
    ] = 0,
) -> None:
    """Private rows, a server that sees released values only, and an auditor who believes neither.

    Three processes on this machine: the server learns from values that participants released,
    a device downloads the public bundle, checks it, releases its rows and asks, and an auditor
    recomputes the guarantee and what was spent. Writes results.json and everything that they left.
    """
    from reticent.demos.collaboration.demo import run_demo, summary
    from reticent.demos.collaboration.settings import CollaborationSettings

    target = out if out is not None else Path("runs") / "collaboration"
    with output_folder(target, marker=MARKER, overwrite=True) as folder:
        results = run_demo(folder.path.resolve(), CollaborationSettings(seed=seed))
        folder.write(MARKER, json.dumps(results, indent=2, allow_nan=False).encode())
    typer.echo(summary(results))
    typer.echo(f"Everything that the three left is in {target}")
