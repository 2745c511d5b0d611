"""``reticent radius``: the meaning of a radius for public rows, and advice which to choose."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli.bundles import open_bundle
from reticent.cli.options import (
    ArrayName,
    Columns,
    Embedder,
    IgnoreColumns,
    Json,
    Overwrite,
    Page,
    PublicRows,
    Research,
    TrustedKey,
)
from reticent.core.errors import InvalidInput
from reticent.core.norms import Norm

if TYPE_CHECKING:
    from reticent.core.arrays import Array
    from reticent.radius.survey import RadiusSurvey

_PICTURES = 6
_NEIGHBOURS = 4


def radius(
    rows: PublicRows,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Fitted bundle. Distances are measured in its space, and its radius, epsilon and "
            "norm are the defaults. Without it rows are points of numbers.",
        ),
    ] = None,
    radii: Annotated[
        list[float] | None, typer.Option("--radius", help="Radius R. May be repeated.")
    ] = None,
    epsilons: Annotated[
        list[float] | None,
        typer.Option("--epsilon", help="Epsilon of one answer. May be repeated."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Delta of one answer, 0 without a bundle.")
    ] = None,
    norm: Annotated[
        Norm | None, typer.Option(help="Norm of the neighbourhood, linf without a bundle.")
    ] = None,
    column: Columns = None,
    array: ArrayName = None,
    ignore_column: IgnoreColumns = None,
    nearest: Annotated[int, typer.Option(help="k of the rule about the k-th nearest row.")] = 10,
    pairs: Annotated[int, typer.Option(help="Number of random pairs of rows.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the random pairs.")] = 0,
    page: Page = None,
    as_json: Json = False,
    trusted_key: TrustedKey = None,
    embedder: Embedder = None,
    research: Research = False,
    overwrite: Overwrite = False,
) -> None:
    """Show what a radius means for PUBLIC rows, and suggest which R to choose.

    The output shows who lies within a radius and what the guarantee caps. It is as private as the
    rows. Nothing is released and no budget is charged. With --research the default epsilon is what
    a sound account gives, and not what the paper states.
    """
    from reticent.cli.files import check_page, print_table, read_rows, write_page
    from reticent.radius import survey_radius
    from reticent.radius.page import lines, radius_page, tables

    check_page(page, overwrite=overwrite)
    if research and bundle is None:
        raise InvalidInput("research: expected with --bundle")
    system: Any = (
        None if bundle is None else open_bundle(bundle, trusted_key, embedder, research=research)
    )
    stated = _stated(system, bundle, research=research)
    found = read_rows(
        rows, system=system, array=array, ignore=ignore_column, columns=column, name="rows"
    )
    points = found.numbers() if system is None else _points(system, found.inputs)
    sizes = radii or stated.get("radius", [])
    budgets = epsilons or stated.get("epsilon", [])
    if not budgets:
        raise InvalidInput("epsilon: expected --epsilon at least once, or --bundle, which has one")
    survey = survey_radius(
        points,
        radii=sizes,
        epsilons=budgets,
        norm=norm if norm is not None else stated.get("norm", Norm.LINF),
        delta=delta if delta is not None else stated.get("delta", 0.0),
        columns=found.columns,
        neighbour=nearest,
        pairs=pairs,
        seed=seed,
    )
    if as_json:
        typer.echo(json.dumps(asdict(survey), indent=2))
    else:
        for line in lines(survey):
            typer.echo(line)
        titles = ("within R", "cap on naming the right one of two", "rules that choose R")
        for table, title in zip(tables(survey), titles, strict=True):
            print_table(table, title)

    def content() -> str:
        return radius_page(
            survey, None if system is None else _pictures(system, points, survey, seed)
        )

    write_page(page, content, overwrite=overwrite, quiet=as_json)


def _stated(system: Any, folder: Path | None, *, research: bool) -> dict[str, Any]:
    """Return radius, epsilon, delta and norm of a bundle's guarantee. With ``research`` epsilon and
    delta are those of a sound account.

    Raise InvalidInput unless steps of the radius lead from any row to any other in the space of its
    encoded rows.
    """
    from reticent.core.guarantees import Neighborhood
    from reticent.systems.power.clear_query import LikeliestQuery, ProtectedQuery
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
    sound = system.spent() if research else guarantee
    return {
        "radius": [adjacency.radius],
        "epsilon": [sound.epsilon],
        "delta": sound.delta,
        "norm": adjacency.metric,
    }


def _points(system: Any, rows: Any) -> Array:
    """Return the rows as points of the space in which the bundle's guarantee measures distance."""
    if hasattr(system, "embed"):
        points: Array = system.embed(rows)
        return points
    coded: Array = system.checked(rows).dense()
    return coded


def _pictures(system: Any, points: Array, found: RadiusSurvey, seed: int) -> Any:
    from reticent.radius.pictures import farthest_neighbours

    query: Any = getattr(system, "query_", None)
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
