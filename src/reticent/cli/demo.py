"""`reticent demo`: a whole job from end to end, with a page to look at."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from reticent.cli.options import TrainingSeed
from reticent.core.extras import require
from reticent.core.files import output_folder

if TYPE_CHECKING:
    from reticent.demos.page import Demonstration

app = typer.Typer(
    no_args_is_help=True,
    help="Demonstrations that end with a page to look at.",
    rich_markup_mode=None,
)

_FROM_FILES = "digits needs no file; the others are read from $RETICENT_DATA."

Output = Annotated[
    Path | None, typer.Option(help="Folder to write; an earlier demonstration there is replaced.")
]


KnnData = Literal["digits", "mnist", "fashion"]
PosthocData = Literal[KnnData, "utkface"]
CertifiedData = Literal["adult-sample", "digits", "imdb"]
PowerData = Literal["adult-sample", "adult", "breast-cancer"]


@app.callback()
def demonstrations() -> None:
    """Demonstrations that end with a page to look at."""


@app.command()
def posthoc(
    dataset: Annotated[PosthocData, typer.Option(help=_FROM_FILES)] = "digits",
    output: Output = None,
    seed: TrainingSeed = 0,
) -> None:
    """Private pictures to an untrusted server: train, certify, calibrate, release, learn, attack.

    Writes index.html (open it), results.json, card.md, the fitted bundle and the held-out
    pictures. The privacy parameters are suggestions for looking around; a release of your own has
    to name its own.
    """
    torch = require("torch", extra="networks")
    from reticent.datasets import load
    from reticent.demos import posthoc

    pictures = load(dataset)
    if dataset == "digits":
        torch.set_num_threads(1)  # networks this small only wait for a second thread
    settings = posthoc.suggested(dataset, seed=seed)
    _written(output, f"posthoc-{dataset}", posthoc.run_demo, pictures, settings)


@app.command()
def certified(
    dataset: Annotated[
        CertifiedData,
        typer.Option(
            help="adult-sample and digits need no file; imdb is read from $RETICENT_DATA."
        ),
    ] = "adult-sample",
    epsilon: Annotated[
        float | None, typer.Option(help="Of one answer; by default one that suits the data.")
    ] = None,
    output: Output = None,
) -> None:
    """Labels from a model of private records: train, certify every number of changed records,
    release.

    Writes index.html (open it), results.json, card.md, the queries and the fitted bundle, which is
    as private as the records. The privacy parameters are suggestions for looking around; a release
    of your own has to name its own.
    """
    from reticent.demos.certified import run_demo

    _written(output, f"certified-{dataset}", run_demo, dataset, epsilon=epsilon)


@app.command()
def knn(
    dataset: Annotated[KnnData, typer.Option(help=_FROM_FILES)] = "digits",
    output: Output = None,
    seed: TrainingSeed = 0,
) -> None:
    """Labels and a student model from private records, under one total for everything.

    Writes index.html (open it), results.json, card.md and the student's bundle. The privacy
    parameters are suggestions for looking around; a release of your own has to name its own.
    """
    torch = require("torch", extra="networks")
    from reticent.datasets import load
    from reticent.demos import private_knn

    pictures = load(dataset)
    torch.set_num_threads(1)  # records are embedded one by one, where a second thread only waits
    student = private_knn.suggested(dataset, seed=seed)
    _written(output, f"knn-{dataset}", private_knn.run_demo, pictures, student)


@app.command()
def power(
    dataset: Annotated[
        PowerData,
        typer.Option(
            help="adult-sample and breast-cancer need no file; adult is read from "
            "$RETICENT_DATA, or downloaded from OpenML."
        ),
    ] = "adult-sample",
    output: Output = None,
    seed: TrainingSeed = 0,
) -> None:
    """Private table rows to an untrusted server: encode by a public schema, release, learn.

    Writes index.html (open it), results.json, card.md, the fitted bundle and the held-out rows.
    The privacy parameters are suggestions for looking around; a release of your own has to name
    its own.
    """
    torch = require("torch", extra="networks")
    from reticent.demos import power

    torch.set_num_threads(1)  # networks this small only wait for a second thread
    settings = power.Settings(seed=seed)
    _written(output, f"power-{dataset}", power.run_demo, dataset, settings)


@app.command()
def collaboration(output: Output = None, seed: TrainingSeed = 0) -> None:
    """Private rows, a server that sees released values only, and an auditor who believes neither.

    Three processes on this machine: the server learns from values that participants released,
    a device downloads the public bundle, checks it, releases its rows and asks, and an auditor
    recomputes the guarantee and what was spent. Writes results.json and everything that they left.
    """
    from reticent.demos.collaboration import Settings, run_demo, summary
    from reticent.demos.page import MARKER

    target = output if output is not None else Path("runs") / "collaboration"
    with output_folder(target, marker=MARKER, overwrite=True) as folder:
        results = run_demo(folder.path.resolve(), Settings(seed=seed))
        folder.write(MARKER, json.dumps(results, indent=2, allow_nan=False).encode())
    typer.echo(summary(results))
    typer.echo(f"Everything that the three left is in {target}")


def _written(
    output: Path | None, name: str, run: Callable[..., Demonstration], *words: Any, **named: Any
) -> None:
    """Run a demonstration, write its folder and say where the page is."""
    from reticent.demos.page import MARKER
    from reticent.training.progress import bar

    target = output if output is not None else Path("runs") / name
    with output_folder(target, marker=MARKER, overwrite=True) as folder:
        with bar() as report:
            demo = run(*words, **named, report=report)
        demo.write(folder)
    typer.echo(demo.summary)
    typer.echo(f"Open {target / 'index.html'}")
