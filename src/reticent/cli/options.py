"""The options that several commands have: one name, one meaning and one text for each.

Rows are the argument ROWS or ``--input``. What is written is ``--output``, and a page of HTML is
``--page``. The end of a file's name says its format.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

_ROWS = "CSV (comma, semicolon or tab; plain or .gz), Parquet, Arrow, .npy or .npz"


ScoringName = Literal[
    "log_loss", "brier", "information", "accuracy", "balanced_accuracy", "roc_auc"
]
TableFormat = Literal["parquet", "csv", "arrow"]

# Rows and their columns

PublicRows = Annotated[Path, typer.Argument(metavar="ROWS", help=f"PUBLIC rows: {_ROWS}.")]
InputRows = Annotated[
    Path,
    typer.Option(
        "--input",
        metavar="ROWS",
        help=f"Rows: {_ROWS}. Columns are found by name, those of arrays by position.",
    ),
]
ArrayName = Annotated[
    str | None,
    typer.Option("--array", metavar="NAME", help="Which array of an .npz file holds the rows."),
]
IgnoreColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore-column", metavar="NAME", help="Column that is not read; may be repeated."
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column", "--target", metavar="NAME", help="Column that holds the labels."
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Labels of the rows: an array, or a table with one column."),
]
SubjectColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column that says whose privacy each row spends."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME",
        help="Array or column with labels or an attribute of each row, to be looked at beside the "
        "rows; may be repeated.",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema", metavar="JSON", help="Schema of the columns; without it all are numbers."
    ),
]

# What is written

Page = Annotated[Path | None, typer.Option(metavar="HTML", help="Page to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what stands there already.")]
Json = Annotated[bool, typer.Option("--json", help="Print plain JSON.")]

# Bundles and keys

BundleFolder = Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of a fitted bundle.")]
TrustedKey = Annotated[
    Path | None,
    typer.Option(
        metavar="PEM",
        help="Public Ed25519 key that must have signed every bundle; without it a folder is "
        "trusted as it is.",
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        metavar="FILE:FUNCTION",
        help="For a bundle that was fitted with your own torch module: a Python file or module, "
        "and a function in it that returns that module with its weights. The file is run.",
    ),
]
SigningKey = Annotated[
    Path | None,
    typer.Option(metavar="PEM", help="Private Ed25519 key, without a password, to sign with."),
]

# Budgets

_LEDGER = typer.Option(
    "--ledger",
    envvar="RETICENT_LEDGER",
    metavar="URL",
    help="A file, or sqlite:///FILE, or postgresql://USER@HOST/NAME.",
)
LedgerUrl = Annotated[str, _LEDGER]
OptionalLedger = Annotated[str | None, _LEDGER]
Principal = Annotated[
    str, typer.Option(metavar="NAME", help="The client that asks; empty for any.")
]
Subject = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The person, record or data set whose privacy is spent; empty for any.",
    ),
]
BundleName = Annotated[
    str, typer.Option("--bundle", metavar="NAME", help="The bundle that answers; empty for any.")
]
Epsilon = Annotated[float, typer.Option(help="Epsilon, above 0.")]
Delta = Annotated[float, typer.Option(help="Delta, from 0 to below 1.")]

# How long, how often, by what chance, for what

Scoring = Annotated[
    ScoringName,
    typer.Option(help="What an answer is worth; the first three are proper scores."),
]
Seconds = Annotated[float, typer.Option(help="Limit of CPU time.")]
TrainingSeed = Annotated[
    int, typer.Option("--seed", min=0, help="Of training. The noise of a release has no seed.")
]
DrawnSeed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, help="Of all that is drawn and thrown away; drawn where it is not given."
    ),
]
Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Processes that work; -1 for one per core.")
]
