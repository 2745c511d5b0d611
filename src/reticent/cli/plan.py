"""`reticent plan` and `reticent plan-inputs`: which method to use, found on public rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli.ledger import booking, opened
from reticent.cli.neighbours import guarantee_for, record_adjacency, statement
from reticent.cli.options import (
    ArrayName,
    Delta,
    DrawnSeed,
    Epsilon,
    IgnoreColumns,
    Json,
    LabelColumn,
    LabelsFile,
    OptionalLedger,
    Overwrite,
    Page,
    Principal,
    PublicRows,
    SchemaFile,
    Scoring,
    Seconds,
    Subject,
)
from reticent.core.errors import InvalidInput

if TYPE_CHECKING:
    from reticent.core.guarantees import Guarantee
    from reticent.core.scopes import Scope
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
        int | None, typer.Option(min=1, help="Most labels ever asked for. Any number if absent.")
    ] = None,
    classes: Annotated[
        str, typer.Option(help="All labels, separated by commas. Needed without labels.")
    ] = "",
    scoring: Scoring = "log_loss",
    cost: Annotated[
        str,
        typer.Option(
            metavar="MATRIX",
            help="Costs of wrong labels, such as 0,1;5,0. It has a row for each true label, in the "
            "order of sorted labels.",
        ),
    ] = "",
    kind: Annotated[
        str | None, typer.Option(help="table, embedding or picture. Told by the columns if absent.")
    ] = None,
    seconds: Seconds = 300.0,
    seed: DrawnSeed = None,
    page: Page = None,
    fit: Annotated[
        Path | None,
        typer.Option(metavar="ROWS", help="PRIVATE rows with labels, to fit the winner on."),
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Bundle of the fitted winner to write.")
    ] = None,
    ledger: OptionalLedger = None,
    principal: Principal = "",
    subject: Subject = "",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare the methods that fit at a guarantee on public rows, and say which one to take.

    Epsilon and delta are those of everything that is released. A table without a schema gets a
    draft of one. Private records are not read, and nothing is spent, unless --fit names them. Then
    the winner is fitted on them and written with its card, and its cost is booked if a ledger is
    named. Standard error shows the progress.
    """
    from reticent.cli.files import check_page, read_labelled
    from reticent.cli.fit_config import schema_of_table
    from reticent.core.files import check_folder_replaceable
    from reticent.core.scopes import Scope
    from reticent.planning.fitting import fit_plan
    from reticent.planning.planner import plan as find_plan
    from reticent.release.bundle import MARKER
    from reticent.tables.schema import TabularSchema
    from reticent.training.progress import bar

    check_page(page, overwrite=overwrite)
    if (fit is None) != (bundle is None):
        raise InvalidInput("fit, bundle: expected both or neither")
    if fit is None and (ledger is not None or principal or subject):
        raise InvalidInput("ledger, principal, subject: expected together with --fit")
    if ledger is not None and not subject:
        raise InvalidInput("subject: expected with --ledger, the name of the private records")
    if fit is not None and (label_column is None or answers is not None):
        raise InvalidInput("fit: expected with --target, and without --answers")
    if ledger is not None:
        _check_budget(
            ledger,
            Scope(principal=principal, subject=subject),
            guarantee_for(f"{record_adjacency(neighbours)}:record:1:{subject}", epsilon, delta),
        )
    if bundle is not None:
        check_folder_replaceable(bundle, marker=MARKER, overwrite=overwrite)
    unread = [*(ignore_column or ())]
    known = (
        schema_of_table(rows, ignore=[*unread, *([label_column] if label_column else [])])
        if schema is None
        else TabularSchema.read(schema)
    )
    reading: dict[str, Any] = {
        "schema": known,
        "array": array,
        "ignore": ignore_column if known is None else [*unread, *known.left_out],
        "label_column": label_column,
    }
    found, y = read_labelled(rows, labels=labels, **reading)
    listed = [word.strip() for word in classes.split(",") if word.strip()] or None
    if y is not None and listed is not None:
        raise InvalidInput("classes: expected only for rows without labels")
    public = found.numbers() if known is None else found.inputs
    with bar() as report:
        outcome = find_plan(
            public,
            y,
            n_private=private,
            epsilon=epsilon,
            delta=delta,
            adjacency=record_adjacency(neighbours),
            answers=answers,
            classes=listed,
            scoring=scoring,
            cost=_matrix(cost),
            rows=kind,
            schema=known,
            seconds=seconds,
            random_state=seed,
            report=report,
        )
    _show(outcome, page, overwrite=overwrite, as_json=as_json)
    if known is not None and schema is None:
        typer.echo(known.note, err=True)
    if fit is None or bundle is None:
        return
    records, private_labels = read_labelled(fit, name="fit", **reading)
    assert private_labels is not None  # --fit needs --target
    with booking(ledger, principal, subject) as books:
        fitted = fit_plan(
            outcome,
            records.numbers() if known is None else records.inputs,
            private_labels,
            public_X=public,
            public_y=y,
            data_set=subject or None,
            **books,
        )
        fitted.estimator.save(bundle, overwrite=overwrite)
    typer.echo(fitted.estimator.card().to_markdown(), err=as_json)
    score = fitted.expected
    if not math.isnan(score.value):
        typer.echo(
            f"{outcome.scoring} of the fitted model on public rows, by offsets that did not see "
            f"them: at least {score.at_least:.4f} in 9 cases of 10 ({score.value:.4f} ± "
            f"{score.error:.4f})",
            err=as_json,
        )
    typer.echo(f"written to {bundle}", err=as_json)


def _check_budget(url: str, scope: Scope, wanted: Guarantee) -> None:
    """Raise, before a plan that would be for nothing, if no budget is of the fit's kind."""
    from reticent.accounting.events import PrivacyEvent
    from reticent.core.errors import BudgetExceeded, IncompatibleGuarantees

    with opened(url) as book:
        try:
            book.preview(scope, PrivacyEvent("plan", wanted), answers=1)
        except (BudgetExceeded, IncompatibleGuarantees):
            typer.echo(
                f"the fit needs a budget: reticent ledger grant --subject {quote(scope.subject)} "
                f"--neighbours {quote(statement(wanted))} --epsilon {wanted.epsilon:g} "
                f"--delta {wanted.delta:g}",
                err=True,
            )
            raise


def plan_inputs(
    rows: PublicRows,
    schema: Annotated[Path, typer.Option(metavar="JSON", help="Schema of the other columns.")],
    epsilon: Epsilon,
    delta: Delta,
    radius: Annotated[
        float | None,
        typer.Option(help="l2 radius in the encoded space. Without a radius: any two rows."),
    ] = None,
    attribute_radius: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=R: radius of one attribute, in its own units. With 0 it is not protected. "
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
    """Compare all releases of one input that fit at a guarantee, and say which one to take.

    The comparison uses public rows.
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
    """Return the radius of every attribute, infinity if it is not named, or None for no words."""
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


def _matrix(text: str) -> list[list[float]] | None:
    """Return a matrix of rows separated by semicolons, or None for no text."""
    if not text:
        return None
    try:
        return [[float(part) for part in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise InvalidInput(f"cost={text!r}: expected rows of numbers, such as 0,1;5,0") from None
