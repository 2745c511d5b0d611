"""The options that several commands have: one name, one meaning and one text for each.

Rows are the argument ROWS or ``--input``. Output files are ``--output``, and a page of HTML is
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


def group(words: str) -> typer.Typer:
    """Return an empty group of commands, which is one even when it has one command only."""
    made = typer.Typer(help=words, no_args_is_help=True, rich_markup_mode=None)
    made.callback()(lambda: None)
    return made


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
    typer.Option("--array", metavar="NAME", help="Name of the rows' array in an .npz file."),
]
IgnoreColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore-column", metavar="NAME", help="Column that is not read. May be repeated."
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
        help="Array or column with labels or an attribute of each row, to compare with the rows. "
        "May be repeated.",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema", metavar="JSON", help="Schema of the columns. Without it all are numbers."
    ),
]

# What is written

Page = Annotated[Path | None, typer.Option(metavar="HTML", help="Page to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
Json = Annotated[bool, typer.Option("--json", help="Print plain JSON.")]

# Bundles and keys

BundleFolder = Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of a fitted bundle.")]
TrustedKey = Annotated[
    Path | None,
    typer.Option(
        metavar="PEM",
        help="Public Ed25519 key that must have signed every bundle. Without it a folder is "
        "trusted as it is.",
    ),
]
Research = Annotated[
    bool,
    typer.Option(
        "--research",
        help="The bundle is an algorithm as its paper prints it, which is not private.",
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
Principal = Annotated[str, typer.Option(metavar="NAME", help="Client that asks. Empty for any.")]
Subject = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Person, record or data set whose privacy is spent. Empty for any.",
    ),
]
BundleName = Annotated[
    str, typer.Option("--bundle", metavar="NAME", help="Bundle that answers. Empty for any.")
]
Epsilon = Annotated[float, typer.Option(help="Epsilon, above 0.")]
Delta = Annotated[float, typer.Option(help="Delta, from 0 to below 1.")]

# How long, how often, by what chance, for what

Scoring = Annotated[
    ScoringName,
    typer.Option(help="Measure of an answer's worth. The first three are proper scores."),
]
Seconds = Annotated[float, typer.Option(help="Limit of CPU time.")]
TrainingSeed = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of training. A release's noise has no seed.")
]
DrawnSeed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, help="Seed of all that is drawn and thrown away. Drawn if absent."
    ),
]
Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Number of processes, -1 for one per core.")
]

# Tests of claims

Alpha = Annotated[float, typer.Option(help="Chance of refuting a claim that holds.")]

# Servers

BehindProxy = Annotated[
    bool,
    typer.Option(
        "--behind-proxy",
        help="Listen at other addresses than this machine's own, behind a proxy that limits "
        "connections.",
    ),
]
