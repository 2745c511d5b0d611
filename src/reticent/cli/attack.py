"""``reticent attack bundle``: attacks on somebody's own fitted system, beside their caps."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from reticent.cli.bundles import BundleFolder, TrustedKey, open_bundle
from reticent.core.errors import GuaranteeRefuted
from reticent.core.files import output_file

if TYPE_CHECKING:
    from reticent.attacks.fitted import FittedAttack
    from reticent.cli.bundles import AnsweringSystem

attack_app = typer.Typer(
    help="What an attacker gets back from a fitted system, beside what is proved.",
    no_args_is_help=True,
)

_PAGE_ROOM = 2**18


@attack_app.callback()
def attack() -> None:
    """What an attacker gets back from a fitted system, beside what is proved."""


@attack_app.command()
def bundle(
    folder: BundleFolder,
    data: Annotated[
        Path,
        typer.Option(
            help="PUBLIC rows, as for release: .npz, .npy, or a CSV, Parquet or Arrow file."
        ),
    ],
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Array or column with an attribute of each row, to be inferred; may be repeated.",
        ),
    ] = None,
    array: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which array of an .npz file holds the rows.")
    ] = None,
    ignore_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column that is not read."),
    ] = None,
    candidates: Annotated[
        int, typer.Option(help="Rows that the input is drawn from, and that the attacker knows.")
    ] = 64,
    trials: Annotated[int, typer.Option(help="Answers of each game.")] = 10_000,
    answers: Annotated[
        list[int] | None,
        typer.Option(help="How many answers about one input are seen; may be repeated."),
    ] = None,
    decoder: Annotated[
        bool, typer.Option(help="Whether a network learns to draw inputs from answers.")
    ] = True,
    critic: Annotated[
        float,
        typer.Option(
            metavar="WEIGHT",
            help="Weight of a critic in the loss of a second decoder, for pictures: .01, say.",
        ),
    ] = 0.0,
    confidence: Annotated[
        float, typer.Option(help="Probability that no cap is called exceeded by chance.")
    ] = 0.999,
    seed: Annotated[
        int | None, typer.Option(help="Seed of noise and inputs; drawn where it is not given.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help=".html file to write.")] = None,
    trusted_key: TrustedKey = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
    ] = False,
) -> None:
    """Attacks on a posthoc or table bundle by someone who knows it and PUBLIC rows.

    Which of two rows, which of many, after one and several answers, an attribute, the row itself:
    each by the exact probabilities of the mechanism, beside the proved cap. Answers are thrown
    away, no budget is charged. The exit status is 19 where a cap is exceeded: then the mechanism is
    not what the bundle states.
    """
    from reticent.attacks.candidates import attackable_query
    from reticent.attacks.fitted import attack_fitted
    from reticent.attacks.page import attack_page
    from reticent.cli.public_rows import read_public
    from reticent.training.progress import bar

    system = open_bundle(folder, trusted_key)
    attackable_query(system)  # before the rows are read
    rows, columns = read_public(
        data,
        cast("AnsweringSystem", system),
        array=array,
        columns=attribute or (),
        ignore=ignore_column or (),
    )
    with bar() as report:
        found = attack_fitted(
            system,
            rows,
            columns=columns,
            candidates=candidates,
            trials=trials,
            answers=answers or (1, 4, 16),
            decoder=decoder,
            critic=critic,
            confidence=confidence,
            seed=secrets.randbelow(2**63) if seed is None else seed,
            report=report,
        )
    if output is not None:
        with output_file(output, size=_PAGE_ROOM, overwrite=overwrite) as put:
            put(attack_page(found).encode())
    _print(found)
    if output is not None:
        typer.echo(f"written to {output}")
    if found.exceeded:
        raise GuaranteeRefuted(f"bundle={str(folder)!r}: {found.verdict}")


def _print(found: FittedAttack) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    games = Table(
        "question", "right", "at least", "proved cap", "without an answer", title=found.system
    )
    for game in found.games:
        numbers = (game.success, game.lower, game.cap, game.blind)
        games.add_row(game.name, *(f"{number:.3f}" for number in numbers))
    console.print(games)
    estimates = Table("estimate of the input", "mean squared error", "proved floor", "blind")
    for one in found.reconstructions:
        estimates.add_row(one.name, *(f"{x:.4g}" for x in (one.error, one.floor, one.blind)))
    console.print(estimates)
    typer.echo(f"claim: {found.claim.describe()}")
    typer.echo(
        f"{found.candidates} candidates; seed {found.seed}; no budget was charged; all lower "
        f"limits hold with confidence {found.confidence:g}"
    )
    typer.echo(found.verdict)
