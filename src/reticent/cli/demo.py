"""`reticent demo`: a whole job from end to end, with a page of results."""

from __future__ import annotations

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
    help="Run a demonstration and write a page of its results.",
    rich_markup_mode=None,
)

_FROM_FILES = "digits needs no file; the others are read from $RETICENT_DATA."

Output = Annotated[
    Path | None, typer.Option(help="Folder to write. An earlier demonstration there is replaced.")
]


PictureData = Literal["digits", "mnist", "fashion"]
PosthocData = Literal[PictureData, "utkface"]
CertifiedData = Literal["adult-sample", "digits", "imdb"]
PowerData = Literal["adult-sample", "adult", "breast-cancer"]


@app.callback()
def demonstrations() -> None:
    """Run a demonstration and write a page of its results."""


@app.command()
def posthoc(
    dataset: Annotated[PosthocData, typer.Option(help=_FROM_FILES)] = "digits",
    output: Output = None,
    seed: TrainingSeed = 0,
) -> None:
    """Release private pictures to an untrusted server, let it learn, and attack the release.

    Write index.html (open it), results.json, card.md, the fitted bundle and the held-out pictures.
    The privacy parameters are suggestions for looking around. Name your own for a release of your
    own.
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
            help="Data set. adult-sample and digits need no file, imdb is read from $RETICENT_DATA."
        ),
    ] = "adult-sample",
    epsilon: Annotated[
        float | None, typer.Option(help="Epsilon of one answer. Default: one that suits the data.")
    ] = None,
    output: Output = None,
) -> None:
    """Train a model on private records, certify it for every number of changes, release labels.

    Write index.html (open it), results.json, card.md, the queries and the fitted bundle. The bundle
    is as private as the records. The privacy parameters are suggestions for looking around. Name
    your own for a release of your own.
    """
    from reticent.demos.certified import run_demo

    _written(output, f"certified-{dataset}", run_demo, dataset, epsilon=epsilon)


@app.command()
def model(
    dataset: Annotated[PictureData, typer.Option(help=_FROM_FILES)] = "digits",
    output: Output = None,
) -> None:
    """Release a model from private records and public rows, and compare other ways.

    Write index.html (open it), results.json, card.md and the model's bundle. The privacy parameters
    are suggestions for looking around. Name your own for a release of your own.
    """
    from reticent.datasets import load
    from reticent.demos.released_model import run_demo

    _written(output, f"model-{dataset}", run_demo, load(dataset))


@app.command()
def power(
    dataset: Annotated[
        PowerData,
        typer.Option(
            help="Table. adult-sample and breast-cancer need no file, adult is read from "
            "$RETICENT_DATA or downloaded from OpenML."
        ),
    ] = "adult-sample",
    output: Output = None,
    seed: TrainingSeed = 0,
) -> None:
    """Release private table rows, encoded by a public schema, to an untrusted server that learns.

    Write index.html (open it), results.json, card.md, the fitted bundle and the held-out rows. The
    privacy parameters are suggestions for looking around. Name your own for a release of your own.
    """
    torch = require("torch", extra="networks")
    from reticent.demos import power

    torch.set_num_threads(1)  # networks this small only wait for a second thread
    settings = power.Settings(seed=seed)
    _written(output, f"power-{dataset}", power.run_demo, dataset, settings)


@app.command()
def fleet(
    devices: Annotated[int, typer.Option(min=100, max=5000, help="Devices that report.")] = 2000,
    epsilon: Annotated[float, typer.Option(help="Local epsilon of one report.")] = 4.0,
    output: Output = None,
    seed: TrainingSeed = 0,
) -> None:
    """Send one code from each of many devices through a shuffler to an aggregator.

    Both are servers on this machine. Write index.html (open it), results.json, card.md with both
    guarantees, and the fitted bundle. The privacy parameters are suggestions for looking around.
    Name your own for a release of your own.
    """
    from reticent.demos.fleet import Settings, run_demo

    settings = Settings(devices=devices, epsilon=epsilon, seed=seed)
    _written(output, "fleet", run_demo, settings)


def _written(
    output: Path | None, name: str, run: Callable[..., Demonstration], *words: Any, **named: Any
) -> None:
    """Run a demonstration, write its folder and print the page's place."""
    from reticent.demos.page import MARKER
    from reticent.training.progress import bar

    target = output if output is not None else Path("runs") / name
    with output_folder(target, marker=MARKER, overwrite=True) as folder:
        with bar() as report:
            demo = run(*words, **named, report=report)
        demo.write(folder)
    typer.echo(demo.summary)
    typer.echo(f"Open {target / 'index.html'}")
