"""`reticent plan-inputs`: which release of a private input to use, found on public rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.plan import PlanScoring
from reticent.core.errors import InvalidInput

if TYPE_CHECKING:
    from reticent.tables.schema import TabularSchema


def plan_inputs(
    rows: Annotated[Path, typer.Argument(help="PUBLIC rows: a CSV or Parquet file with names.")],
    target: Annotated[str, typer.Option(help="Column that holds the labels.")],
    schema: Annotated[Path, typer.Option(help="Schema of the other columns (JSON).")],
    epsilon: Annotated[float, typer.Option(help="Of one released input.")],
    delta: Annotated[float, typer.Option(help="Of one released input.")],
    radius: Annotated[
        float | None,
        typer.Option(help="l2 radius in the encoded space; without any radius, any two rows."),
    ] = None,
    attribute_radius: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=R: radius of one attribute, in its own units; 0 protects it not at all. "
            "Once one is given, attributes without one may have any value."
        ),
    ] = None,
    ignore_column: Annotated[
        list[str] | None, typer.Option(help="Column of the file that is not read.")
    ] = None,
    scoring: Annotated[
        PlanScoring, typer.Option(help="What an answer is worth.")
    ] = PlanScoring.INFORMATION,
    seconds: Annotated[float, typer.Option(help="Time limit.")] = 300.0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of splits, training and simulated noise.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="HTML file to write.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the page if it is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Tries every release of one input that fits at a guarantee on public rows, and says which one
    to take.

    Private inputs are not read, and nothing is spent. Standard error shows the progress.
    """
    import numpy as np

    from reticent.core.files import check_replaceable
    from reticent.planning.inputs import plan_inputs as find_plan
    from reticent.tables.batches import read_whole
    from reticent.tables.schema import TabularSchema
    from reticent.training.progress import bar

    if page is not None:
        check_replaceable(page, overwrite=overwrite)
    known = TabularSchema.read(schema)
    radii = _radii(attribute_radius or [], known)
    if radius is not None and radii is not None:
        raise InvalidInput("radius, attribute_radius: expected one of them")
    found = read_whole(rows, known, ignore=ignore_column or [], subject_column=target, name="rows")
    with bar() as report:
        plan = find_plan(
            found.rows,
            np.array(found.subjects),
            schema=known,
            epsilon=epsilon,
            delta=delta,
            radius=radius if radii is None else radii,
            scoring=str(scoring),
            seconds=seconds,
            random_state=seed,
            report=report,
        )
    typer.echo(json.dumps(plan.to_dict(), indent=2, allow_nan=False) if as_json else plan.table())
    if page is not None:
        plan.page(page, overwrite=overwrite)
        typer.echo(f"Open {page}", err=as_json)


def _radii(words: list[str], schema: TabularSchema) -> dict[str, float] | None:
    """A radius for every attribute, infinity for those that are not named; None for no words."""
    if not words:
        return None
    radii = {attribute.name: math.inf for attribute in schema.attributes}
    for word in words:
        name, sign, value = word.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not sign or math.isnan(number):
            raise InvalidInput(f"attribute_radius={word!r}: expected NAME=R, such as age=5")
        if name not in radii:
            raise InvalidInput(f"attribute_radius={word!r}: the schema has no such attribute")
        radii[name] = number
    return radii
