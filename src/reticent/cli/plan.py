"""`reticent plan`: which method to use for private records, found on public rows."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.core.errors import InvalidInput

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.tables.schema import TabularSchema


_WIDEST = 1e150


class PlanAdjacency(StrEnum):
    """What neighbouring data sets are."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


class PlanScoring(StrEnum):
    """Criteria; the first three are proper scores."""

    LOG_LOSS = "log_loss"
    BRIER = "brier"
    INFORMATION = "information"
    ACCURACY = "accuracy"
    BALANCED_ACCURACY = "balanced_accuracy"
    ROC_AUC = "roc_auc"


def plan(
    rows: Annotated[
        Path, typer.Argument(help="PUBLIC rows: an .npy file of numbers, or a CSV file with names.")
    ],
    private: Annotated[
        int, typer.Option(min=1, help="Number of private records, which counts as public.")
    ],
    epsilon: Annotated[float, typer.Option(help="Of everything that is released.")],
    delta: Annotated[float, typer.Option(help="Of everything that is released.")],
    adjacency: Annotated[
        PlanAdjacency, typer.Option(help="What neighbouring data sets differ in.")
    ] = PlanAdjacency.ADD_REMOVE,
    labels: Annotated[
        Path | None, typer.Option(help="Labels of the rows, an .npy file; with rows in .npy.")
    ] = None,
    target: Annotated[str, typer.Option(help="Column of the CSV file that holds the labels.")] = "",
    schema: Annotated[
        Path | None,
        typer.Option(help="Schema of the CSV file (JSON). Without it all columns are numbers."),
    ] = None,
    ignore_column: Annotated[
        list[str] | None, typer.Option(help="Column of the CSV file that is not read.")
    ] = None,
    answers: Annotated[
        int | None, typer.Option(min=1, help="Labels that will ever be asked for; any, if absent.")
    ] = None,
    classes: Annotated[
        str, typer.Option(help="All labels, separated by commas; needed without labels.")
    ] = "",
    prevalence: Annotated[
        str, typer.Option(help="Shares of the classes, separated by commas; without labels only.")
    ] = "",
    scoring: Annotated[
        PlanScoring, typer.Option(help="What an answer is worth; the default is a proper score.")
    ] = PlanScoring.LOG_LOSS,
    seconds: Annotated[float, typer.Option(help="Time limit.")] = 300.0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of splits and noise of the trials.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Workers that try settings: 1.")] = None,
    page: Annotated[Path | None, typer.Option(help="HTML file to write.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the page if it is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Tries every method that fits at a guarantee on public rows, and says which one to take.

    Private records are not read, and nothing is spent. Standard error shows the progress.
    """
    from reticent.core.files import check_replaceable
    from reticent.planning.planner import plan as find_plan
    from reticent.training.progress import bar

    if page is not None:
        check_replaceable(page, overwrite=overwrite)
    shares = _shares(prevalence)
    X, y = _public_rows(rows, labels, target, schema, ignore_column or [])
    known = [word.strip() for word in classes.split(",") if word.strip()] or None
    if y is not None and known is not None:
        raise InvalidInput("classes: expected only for rows without labels")
    with bar() as report:
        found = find_plan(
            X,
            y,
            n_private=private,
            epsilon=epsilon,
            delta=delta,
            adjacency=str(adjacency),
            answers=answers,
            classes=known,
            prevalence=shares,
            scoring=str(scoring),
            seconds=seconds,
            random_state=seed,
            report=report,
            n_jobs=jobs,
        )
    typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False) if as_json else found.table())
    if page is not None:
        found.page(page, overwrite=overwrite)
        typer.echo(f"Open {page}", err=as_json)


def _public_rows(
    path: Path, labels: Path | None, target: str, schema: Path | None, ignore: list[str]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Rows as numbers, and labels or None."""
    import numpy as np

    from reticent.cli.arrays import NPY, read_array, starts_with
    from reticent.tables.batches import read_whole
    from reticent.tables.schema import TabularSchema

    if starts_with(path, NPY):
        if target or schema is not None or ignore:
            raise InvalidInput(
                f"rows={str(path)!r}: an .npy file has no names of columns; expected neither "
                "--target, --schema nor --ignore-column with it"
            )
        y = None if labels is None else read_array(labels, name="labels")
        return read_array(path, name="rows"), y
    if labels is not None:
        raise InvalidInput("labels: a table holds its labels itself; expected --target")
    known = TabularSchema.read(schema) if schema is not None else _numbers(path, [*ignore, target])
    found = read_whole(path, known, ignore=ignore, subject_column=target or None, name="rows")
    table = found.rows if schema is None else known.encode(found.rows)
    return np.asarray(table), None if found.subjects is None else np.array(found.subjects)


def _numbers(path: Path, ignore: list[str]) -> TabularSchema:
    """A schema by which every column of a file that is not ignored is read as it stands."""
    from reticent.tables.attributes import Numeric
    from reticent.tables.batches import column_names
    from reticent.tables.schema import TabularSchema

    names = [name for name in column_names(path, name="rows") if name not in ignore]
    if not names:
        raise InvalidInput(f"rows={str(path)!r}: expected at least one column that is read")
    return TabularSchema(tuple(Numeric(name, -_WIDEST, _WIDEST) for name in names))


def _shares(text: str) -> list[float] | None:
    if not text:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"prevalence={text!r}: expected numbers separated by commas, such as 0.8,0.2"
        ) from None
