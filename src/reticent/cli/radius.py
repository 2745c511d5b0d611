"""``reticent radius``: what a radius means for public rows, and which one to choose."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli.bundles import TrustedKey, open_bundle
from reticent.core.errors import InvalidInput
from reticent.core.files import output_file
from reticent.core.norms import Norm

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from reticent.radius.survey import RadiusSurvey

    Array = npt.NDArray[np.float64]

_PAGE_ROOM = 2**22
_PICTURES = 6
_NEIGHBOURS = 4


class RadiusNorm(StrEnum):
    """Norms of a neighbourhood."""

    LINF = "linf"
    L1 = "l1"
    L2 = "l2"


def radius(
    data: Annotated[
        Path,
        typer.Argument(
            help="PUBLIC rows: .npz or .npy, or a CSV, Parquet or Arrow file; inputs of the "
            "bundle, or points of numbers without one."
        ),
    ],
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a fitted bundle, whose space distances are measured in, and whose "
            "radius, epsilon and norm are the defaults."
        ),
    ] = None,
    radii: Annotated[
        list[float] | None, typer.Option("--radius", help="R; may be repeated.")
    ] = None,
    epsilons: Annotated[
        list[float] | None,
        typer.Option("--epsilon", help="Epsilon of one answer; may be repeated."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Delta of one answer; without a bundle 0.")
    ] = None,
    norm: Annotated[
        RadiusNorm | None, typer.Option(help="Norm of the neighbourhood; without a bundle linf.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Array or column with labels or an attribute: how far is the nearest row with "
            "another one? May be repeated.",
        ),
    ] = None,
    array: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which array of an .npz file holds the rows.")
    ] = None,
    ignore_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column that is not read."),
    ] = None,
    neighbour: Annotated[int, typer.Option(help="k of the rule about the k-th nearest row.")] = 10,
    pairs: Annotated[int, typer.Option(help="Random pairs of rows that are drawn.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the random pairs.")] = 0,
    output: Annotated[
        Path | None, typer.Option(help=".html file to write, with figures (extra 'plots').")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Plain JSON instead of tables.")] = False,
    trusted_key: TrustedKey = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
    ] = False,
) -> None:
    """What a radius means for PUBLIC rows: who lies within it, what the guarantee caps, which R to
    choose.

    Nothing is released and no budget is charged; what is printed is as private as the rows.
    """
    from reticent.cli.public_rows import read_public
    from reticent.core.extras import require
    from reticent.radius import survey_radius
    from reticent.radius.page import radius_page

    if output is not None:
        require("matplotlib", extra="plots")
    system: Any = None if bundle is None else open_bundle(bundle, trusted_key)
    stated = _stated(system, bundle)
    rows, columns = read_public(
        data, system, array=array, columns=column or (), ignore=ignore_column or ()
    )
    points = rows if system is None else _points(system, rows)
    sizes = radii or stated.get("radius", [])
    budgets = epsilons or stated.get("epsilon", [])
    if not budgets:
        raise InvalidInput("epsilon: expected --epsilon at least once, or --bundle, which has one")
    found = survey_radius(
        points,
        radii=sizes,
        epsilons=budgets,
        norm=norm.value if norm is not None else stated.get("norm", Norm.LINF),
        delta=delta if delta is not None else stated.get("delta", 0.0),
        columns=columns,
        neighbour=neighbour,
        pairs=pairs,
        seed=seed,
    )
    if output is not None:
        pictures = None if system is None else _pictures(system, points, found, seed)
        with output_file(output, size=_PAGE_ROOM, overwrite=overwrite) as put:
            put(radius_page(found, pictures).encode())
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    _print(found)
    if output is not None:
        typer.echo(f"written to {output}")


def _stated(system: Any, folder: Path | None) -> dict[str, Any]:
    """Radius, epsilon, delta and norm of a bundle's guarantee, if steps of the radius lead from any
    row to any other, in the space of its encoded rows.
    """
    from reticent.core.guarantees import Neighborhood
    from reticent.systems.power.likeliest_query import LikeliestQuery
    from reticent.systems.power.protected_query import ProtectedQuery
    from reticent.systems.power.protection import RADII_SPACE

    if system is None:
        return {}
    guarantee: Any = getattr(system, "guarantee", None)
    adjacency = getattr(guarantee, "adjacency", None)
    if not isinstance(adjacency, Neighborhood):
        raise InvalidInput(
            f"bundle={str(folder)!r}: its neighbours are no points within a radius; expected a "
            "bundle of a posthoc release, or of table rows within a radius"
        )
    query = getattr(system, "query_", None)
    if adjacency.space == RADII_SPACE or isinstance(query, ProtectedQuery | LikeliestQuery):
        raise InvalidInput(
            f"bundle={str(folder)!r}: its neighbours agree in some attributes, or have a radius "
            "for each, and nothing is promised about other rows, however near; its card says which"
        )
    return {
        "radius": [adjacency.radius],
        "epsilon": [guarantee.epsilon],
        "delta": guarantee.delta,
        "norm": adjacency.metric,
    }


def _points(system: Any, rows: Any) -> Array:
    """Where the bundle's guarantee measures distance."""
    if hasattr(system, "embed"):
        points: Array = system.embed(rows)
        return points
    coded: Array = system.checked(rows).dense()
    return coded


def _pictures(system: Any, points: Array, found: RadiusSurvey, seed: int) -> Any:
    from reticent.radius.pictures import farthest_neighbours

    query = system.query_
    if not hasattr(query, "embedding") or not found.at:
        return None
    return farthest_neighbours(
        query.embedding,
        points[:_PICTURES],
        radius=found.at[-1].radius,
        norm=found.norm,
        domain=query.bound.domain,
        shown=_NEIGHBOURS,
        seed=seed,
    )


def _print(found: RadiusSurvey) -> None:
    from rich.console import Console
    from rich.table import Table

    from reticent.radius.page import lines, shown

    console = Console()
    for line in lines(found):
        typer.echo(line)
    if found.at:
        counts = Table(
            "R", "rows with another within R", "pairs", "others, median", title="within R"
        )
        for name in found.other:
            counts.add_column(f"another {name}")
        counts.add_column("steps, random pair")
        for at in found.at:
            shares = [f"{share:.1%}" for share in at.counterfactuals.values()]
            counts.add_row(
                f"{at.radius:g}",
                str(at.with_neighbour),
                str(at.pairs),
                f"{at.median_neighbours:g}",
                *shares,
                str(at.median_hops),
            )
        console.print(counts)
        caps = Table(
            "R", "epsilon", "e^epsilon", "neighbours", "median pair", "99 of 100 pairs",
            title="cap on naming the right one of two",
        )  # fmt: skip
        for cap in found.caps:
            caps.add_row(
                f"{cap.radius:g}",
                f"{cap.epsilon:g}",
                f"{cap.factor:.4g}",
                *(f"{value:.3f}" for value in (cap.neighbours, cap.median_pair, cap.farthest)),
            )
        console.print(caps)
    rules = Table("rule", "R", title="rules that choose R")
    for rule in found.rules:
        rules.add_row(rule.name, shown(rule.radius))
    console.print(rules)
