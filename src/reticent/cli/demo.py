"""`reticent demo`: a whole job from end to end, with a page of results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli.options import TrainingSeed, group
from reticent.core.extras import require
from reticent.core.files import output_folder

if TYPE_CHECKING:
    from reticent.demos.page import Demonstration

app = group("Run a demonstration and write a page of its results.")

Output = Annotated[
    Path | None, typer.Option(help="Folder to write. An earlier demonstration there is replaced.")
]


@app.command()
def posthoc(
    output: Output = None,
    seed: TrainingSeed = 0,
) -> None:
    """Release private pictures to an untrusted server, let it learn, and attack the release.

    Write index.html (open it), results.json, card.md, the fitted bundle and the held-out pictures.
    The privacy parameters are suggestions for looking around. Name your own for a release of your
    own.
    """
    torch = require("torch", extra="networks")
    from reticent.datasets import load_digits
    from reticent.demos import posthoc

    torch.set_num_threads(1)  # networks this small only wait for a second thread
    settings = posthoc.Settings(seed=seed)
    _written(output, "posthoc-digits", posthoc.run_demo, load_digits(), settings)


@app.command()
def certified(
    epsilon: Annotated[float, typer.Option(help="Epsilon of one answer.")] = 0.1,
    output: Output = None,
) -> None:
    """Train a model on private records, certify it for every number of changes, release labels.

    Write index.html (open it), results.json, card.md, the queries and the fitted bundle. The bundle
    is as private as the records. The privacy parameters are suggestions for looking around. Name
    your own for a release of your own.
    """
    from reticent.demos.certified import run_demo

    _written(output, "certified-adult-sample", run_demo, epsilon=epsilon)


@app.command()
def model(
    output: Output = None,
) -> None:
    """Release a model from private records and public rows, and compare other ways.

    Write index.html (open it), results.json, card.md and the model's bundle. The privacy parameters
    are suggestions for looking around. Name your own for a release of your own.
    """
    from reticent.datasets import load_digits
    from reticent.demos.released_model import run_demo

    _written(output, "model-digits", run_demo, load_digits())


@app.command()
def power(
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
    _written(output, "power-adult-sample", power.run_demo, settings)


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
