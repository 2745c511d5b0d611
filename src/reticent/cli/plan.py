"""`reticent plan` and `reticent plan-inputs`: which method to use, found on public rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.neighbours import record_adjacency
from reticent.cli.options import (
    ArrayName,
    Delta,
    DrawnSeed,
    Epsilon,
    IgnoreColumns,
    Jobs,
    Json,
    LabelColumn,
    LabelsFile,
    Overwrite,
    Page,
    PublicRows,
    SchemaFile,
    Scoring,
    Seconds,
)
from reticent.core.errors import InvalidInput

if TYPE_CHECKING:
    from reticent.planning.plans import Plan
    from reticent.tables.schema import TabularSchema


def plan(
    rows: PublicRows,
    private: Annotated[
        int, typer.Option(min=1, help="Number of private records, which counts as public.")
    ],
    epsilon: Epsilon,
    delta: Delta,
    neighbours: Annotated[
        str, typer.Option(metavar="STATEMENT", help="add-remove or replace: one record.")
    ] = "add-remove",
    labels: LabelsFile = None,
    label_column: LabelColumn = None,
    schema: SchemaFile = None,
    array: ArrayName = None,
    ignore_column: IgnoreColumns = None,
    answers: Annotated[
        int | None, typer.Option(min=1, help="Labels that will ever be asked for; any, if absent.")
    ] = None,
    classes: Annotated[
        str, typer.Option(help="All labels, separated by commas; needed without labels.")
    ] = "",
    prevalence: Annotated[
        str, typer.Option(help="Shares of the classes, separated by commas; without labels only.")
    ] = "",
    scoring: Scoring = "log_loss",
    seconds: Seconds = 300.0,
    seed: DrawnSeed = None,
    jobs: Jobs = None,
    page: Page = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Tries every method that fits at a guarantee on public rows, and says which one to take.

    Epsilon and delta are those of everything that is released. Private records are not read, and
    nothing is spent. Standard error shows the progress.
    """
    from reticent.cli.files import check_page, read_labelled
    from reticent.planning.planner import plan as find_plan
    from reticent.tables.schema import TabularSchema
    from reticent.training.progress import bar

    check_page(page, overwrite=overwrite)
    shares = _shares(prevalence)
    known = None if schema is None else TabularSchema.read(schema)
    found, y = read_labelled(
        rows,
        schema=known,
        array=array,
        ignore=ignore_column,
        labels=labels,
        label_column=label_column,
    )
    listed = [word.strip() for word in classes.split(",") if word.strip()] or None
    if y is not None and listed is not None:
        raise InvalidInput("classes: expected only for rows without labels")
    with bar() as report:
        outcome = find_plan(
            found.numbers() if known is None else known.encode(found.inputs),
            y,
            n_private=private,
            epsilon=epsilon,
            delta=delta,
            adjacency=record_adjacency(neighbours),
            answers=answers,
            classes=listed,
            prevalence=shares,
            scoring=scoring,
            seconds=seconds,
            random_state=seed,
            report=report,
            n_jobs=jobs,
        )
    _show(outcome, page, overwrite=overwrite, as_json=as_json)


def plan_inputs(
    rows: PublicRows,
    schema: Annotated[Path, typer.Option(metavar="JSON", help="Schema of the other columns.")],
    epsilon: Epsilon,
    delta: Delta,
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
    labels: LabelsFile = None,
    label_column: LabelColumn = None,
    array: ArrayName = None,
    ignore_column: IgnoreColumns = None,
    scoring: Scoring = "information",
    seconds: Seconds = 300.0,
    seed: DrawnSeed = None,
    page: Page = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Tries every release of one input that fits at a guarantee on public rows, and says which one
    to take.

    Epsilon and delta are those of one released input. Private inputs are not read, and nothing is
    spent. Standard error shows the progress.
    """
    from reticent.cli.files import check_page, read_labelled
    from reticent.planning.inputs import plan_inputs as find_plan
    from reticent.tables.schema import TabularSchema
    from reticent.training.progress import bar

    check_page(page, overwrite=overwrite)
    known = TabularSchema.read(schema)
    radii = _radii(attribute_radius or [], known)
    if radius is not None and radii is not None:
        raise InvalidInput("radius, attribute_radius: expected one of them")
    found, y = read_labelled(
        rows,
        schema=known,
        array=array,
        ignore=ignore_column,
        labels=labels,
        label_column=label_column,
    )
    if y is None:
        raise InvalidInput("labels, label_column: expected one of them")
    with bar() as report:
        outcome = find_plan(
            found.inputs,
            y,
            schema=known,
            epsilon=epsilon,
            delta=delta,
            radius=radius if radii is None else radii,
            scoring=scoring,
            seconds=seconds,
            random_state=seed,
            report=report,
        )
    _show(outcome, page, overwrite=overwrite, as_json=as_json)


def _show(found: Plan, page: Path | None, *, overwrite: bool, as_json: bool) -> None:
    typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False) if as_json else found.table())
    if page is not None:
        found.page(page, overwrite=overwrite)
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


def _shares(text: str) -> list[float] | None:
    if not text:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"prevalence={text!r}: expected numbers separated by commas, such as 0.8,0.2"
        ) from None
