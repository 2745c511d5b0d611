"""Commands on a fitted bundle, whatever system it holds: certify, release, card."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from reticent.core.checks import finite_array, positive
from reticent.core.errors import InvalidInput
from reticent.core.files import output_file

if TYPE_CHECKING:
    from reticent.core.releases import Release
    from reticent.core.scopes import Scope
    from reticent.ledger.ledger import Ledger
    from reticent.systems import PosthocEncoder, PowerEncoder, PrivateKNNStudent
    from reticent.systems.certified.system import CertifiedSystem
    from reticent.systems.posthoc.system import PosthocSystem

    System = PosthocSystem | CertifiedSystem | PowerEncoder | PrivateKNNStudent
    AnsweringSystem = PosthocSystem | CertifiedSystem | PowerEncoder

TrustedKey = Annotated[
    Path | None,
    typer.Option(
        metavar="PEM",
        help="Public key that must have signed the bundle; without it the folder is trusted as "
        "it is.",
    ),
]
_WITH_LOCAL_BOUNDS = ("PosthocEncoder", "PosthocClassifier")
"""By name, since their modules load torch, and most bundles need none of it."""

BundleFolder = Annotated[Path, typer.Argument(help="Folder of a fitted bundle.")]


def release(
    bundle: BundleFolder,
    input_: Annotated[
        Path,
        typer.Option(
            "--input",
            help=".npy file with one input per row, in the units seen in training; or a CSV "
            "(plain or gzipped), Parquet or Arrow file, whose columns are found by name; with "
            "--cluster any number of files.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            help="File to write: .npz (values, withheld, receipt as JSON text in bytes), .csv, "
            ".parquet or .arrow; with --rows-per-part or --cluster a folder."
        ),
    ],
    further: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="With --cluster: further input files, as a shell makes of rows/*.parquet.",
        ),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Ledger to book the cost in: a file or a database URL.")
    ] = None,
    client: Annotated[str, typer.Option(help="With --ledger: who asks.")] = "",
    subject: Annotated[
        str, typer.Option(help="With --ledger: whose privacy is spent, by all rows.")
    ] = "",
    subject_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --ledger: column of the CSV file that says whose privacy each row "
            "spends; the bundle does not read it.",
        ),
    ] = None,
    ignore_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Column of the CSV file that is not read, such as a label; may be repeated.",
        ),
    ] = None,
    trusted_key: TrustedKey = None,
    key: Annotated[
        Path | None, typer.Option(metavar="PEM", help="Private key to sign the receipt with.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
    ] = False,
    rows_per_part: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS",
            help="Answer a file of any size in parts, each charged by itself; an interrupted run, "
            "repeated, goes on after the last part.",
        ),
    ] = None,
    part_format: Annotated[
        str | None,
        typer.Option(
            help="With --rows-per-part or --cluster: parquet (the default), csv or arrow."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Scheduler of a Dask cluster, such as tcp://host:8786, whose workers answer "
            "every input file into a folder of its own; they reach bundle, files and ledger under "
            "the names given here.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes that answer; -1 for one per core."),
    ] = None,
) -> None:
    """Answer every input row with the bundle's guarantee, and write the answers whole or not at
    all.

    Each row costs the epsilon and delta that `reticent card` shows, withheld or not. With
    --subject-column every row is charged to its own subject, all of them or none. Noise comes
    from the operating system; there is no seed.
    """
    system = _answering(bundle, trusted_key)
    if key is not None:
        from reticent.core.signatures import check_signing_key

        check_signing_key(key)
    if ledger is None and (client or subject or subject_column is not None):
        raise InvalidInput(
            "client, subject, subject_column: expected together with --ledger, which says "
            "where to book them"
        )
    if subject and subject_column is not None:
        raise InvalidInput(
            "subject, subject_column: expected one of them, for one subject of all rows or for "
            "one of each row"
        )
    in_parts = rows_per_part is not None or cluster is not None
    if not in_parts and part_format is not None:
        raise InvalidInput(
            f"part_format={part_format!r}: expected together with --rows-per-part or --cluster; a "
            "single file has the format that its name ends with"
        )
    if further and cluster is None:
        raise InvalidInput(
            f"input: expected one file, or --cluster for several; got {1 + len(further)}"
        )
    if jobs is not None and in_parts:
        raise InvalidInput(
            f"jobs={jobs}: expected without --rows-per-part and --cluster; parts are answered one "
            "after the other, and on a cluster as many at once as there are workers"
        )
    if in_parts and overwrite:
        raise InvalidInput(
            "overwrite: parts are never replaced; choose a new folder for --output, or repeat the "
            "call without --overwrite to go on with an interrupted run"
        )
    with ExitStack() as stack:
        book = scope = None
        if ledger is not None:
            from reticent.core.scopes import Scope
            from reticent.ledger.ledger import Ledger

            book = Ledger.open(ledger)
            stack.callback(book.close)
            scope = Scope(principal=client, subject=subject, bundle=system.bundle_identity_)
        if cluster is not None:
            from reticent.systems.cluster import Task, release_on_cluster
            from reticent.tables.batches import LARGEST_BATCH

            task = Task(
                bundle=bundle.resolve(),
                ledger=_reachable(ledger),
                scope=scope,
                rows=LARGEST_BATCH if rows_per_part is None else rows_per_part,
                format=part_format or "parquet",
                ignore=tuple(ignore_column or ()),
                subject_column=subject_column,
                trusted_key=None if trusted_key is None else trusted_key.resolve(),
                key=None if key is None else key.resolve(),
            )
            done = release_on_cluster(
                task,
                [input_, *(further or ())],
                output,
                cluster=cluster,
                report=lambda source, rows: typer.echo(f"{source.name}: {rows} rows", err=True),
            )
            typer.echo(
                f"{done[1]} answer(s) in {done[0]} part(s) of {1 + len(further or ())} file(s); "
                f"{done[2]} withheld; in {output}"
            )
            return
        if rows_per_part is not None:
            parts = system.release_stream(
                input_,
                output,
                rows=rows_per_part,
                format=part_format or "parquet",
                ledger=book,
                scope=scope,
                ignore=ignore_column or (),
                subject_column=subject_column,
                key=key,
            )
            _tell_parts(parts, output)
            return
        answers, subjects = _whole(
            system,
            input_,
            output,
            book,
            scope,
            ignore=ignore_column or (),
            subject_column=subject_column,
            key=key,
            overwrite=overwrite,
            jobs=jobs,
        )
    charged = "" if subjects is None else f"; charged to {len(set(subjects))} subject(s)"
    typer.echo(
        f"{answers.receipt.describe()}{charged}; {int(answers.withheld.sum())} withheld; "
        f"written to {output}"
    )


def _whole(
    system: AnsweringSystem,
    source: Path,
    output: Path,
    book: Ledger | None,
    scope: Scope | None,
    *,
    ignore: Sequence[str],
    subject_column: str | None,
    key: Path | None,
    overwrite: bool,
    jobs: int | None,
) -> tuple[Release, Sequence[str] | None]:
    """All answers at once, in one file; and the subject of each row."""
    import numpy as np

    from reticent.cli.arrays import release_content, release_size
    from reticent.tables.batches import FORMATS, check_format, encoded_columns

    kind = output.suffix.removeprefix(".")
    if kind in FORMATS and key is not None:
        raise InvalidInput(
            f"key: a signature has its place in an .npz file, or beside parts (--rows-per-part); "
            f"got output={str(output)!r}"
        )
    if kind in FORMATS:
        check_format(kind)
    inputs, subjects = read_inputs(source, system, ignore=ignore, subject_column=subject_column)
    rows = len(inputs) if hasattr(inputs, "columns") else len(np.atleast_1d(inputs))
    room = release_size(rows, _numbers_per_answer(system)) * (4 if kind in FORMATS else 1)
    with output_file(output, size=room, overwrite=overwrite) as put:
        if book is None or scope is None:
            answers = system.release(inputs, n_jobs=jobs)
        else:
            whole = scope
            each = None if subjects is None else [replace(whole, subject=name) for name in subjects]
            answers = system.release(
                inputs, ledger=book, scope=whole if each is None else each, n_jobs=jobs
            )
        put(
            encoded_columns(answers.to_columns(), kind)
            if kind in FORMATS
            else release_content(answers, key=key)
        )
    return answers, subjects


def _reachable(ledger: str | None) -> str | None:
    """A ledger as workers in other folders find it."""
    return ledger if ledger is None or "://" in ledger else str(Path(ledger).resolve())


def _tell_parts(parts: Iterable[Release], output: Path) -> None:
    """Answers part by part, with progress on standard error, and one line at the end."""
    written = rows = withheld = 0
    for release in parts:
        written, rows = written + 1, rows + len(release)
        withheld += int(release.withheld.sum())
        typer.echo(f"part {written} of this run: {rows} rows so far", err=True)
    typer.echo(
        f"{rows} answer(s) in {written} part(s); {withheld} withheld; in {output}"
        if written
        else f"nothing left to answer; all parts stand in {output}"
    )


def certify(
    bundle: BundleFolder,
    input_: Annotated[
        Path,
        typer.Option(
            "--input", help=".npy file with one PUBLIC input per row, in the units of training."
        ),
    ],
    radius: Annotated[
        float, typer.Option(help="Radius around each input's embedding, in the embedding's units.")
    ],
    output: Annotated[
        Path | None, typer.Option(help=".npy file for the bound of every row.")
    ] = None,
    trusted_key: TrustedKey = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
    ] = False,
) -> None:
    """Proved bounds on the local Lipschitz constant around PUBLIC inputs, e.g. calibration data.

    A local constant depends on the input that it is local to: it is as private as that input.
    Never run this on an input that is to be protected and show anyone what it prints; `release`
    does its own certifying, under the guarantee.
    """
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from reticent.cli.arrays import npy_content, read_array

    positive(radius, name="radius")
    system = _with_local_bounds(bundle, trusted_key)
    inputs = read_array(input_, name="input")
    points = system.embed(inputs)
    if output is None:
        bounds = system.query_.bound.bound(points, radius)
    else:
        with output_file(output, size=8 * len(points) + 4096, overwrite=overwrite) as put:
            bounds = system.query_.bound.bound(points, radius)
            put(npy_content(bounds))
    quantiles = finite_array(np.quantile(bounds, [0.0, 0.5, 0.9, 1.0]), name="bounds")
    plan = system.query_.plan
    table = Table(
        "",
        "Lipschitz bound",
        title=f"{len(points)} inputs, radius {radius:g}, {system.query_.bound.kind}",
    )
    for name, value in zip(
        ("smallest", "median", "90 % of inputs below", "largest"), quantiles, strict=True
    ):
        table.add_row(name, f"{value:.6g}")
    table.add_row("whole public domain", f"{system.query_.bound.global_bound():.6g}")
    table.add_row("proposal that the noise covers", f"{plan.proposal:.6g}")
    Console().print(table)
    typer.echo("A local constant is as private as its input: for public or calibration data only.")


def card(
    bundle: BundleFolder,
    as_json: Annotated[
        bool, typer.Option("--json", help="Plain JSON instead of Markdown.")
    ] = False,
    trusted_key: TrustedKey = None,
) -> None:
    """The bundle's guarantee in plain words: what is protected, from whom, under which
    assumptions.
    """
    from rich.console import Console
    from rich.markdown import Markdown

    shown = open_bundle(bundle, trusted_key).card()
    console = Console()
    if as_json:
        typer.echo(json.dumps(shown.to_dict(), indent=2))
    elif console.is_terminal:
        console.print(Markdown(shown.to_markdown()))
    else:
        typer.echo(shown.to_markdown())


def open_bundle(folder: Path, trusted_key: Path | None = None) -> System:
    """The fitted system in ``folder``, whatever kind it is, if ``trusted_key`` (where there is one)
    has signed it.

    Raises:
        InvalidInput: no such folder, a system that is not known here, or one that needs a module of
            the user's own.
        CorruptBundle: the bundle is damaged.
        UntrustedSignature: not signed by ``trusted_key``.
    """
    from reticent.systems.loading import load

    return cast("System", load(folder, trusted_key=trusted_key))


def _answering(folder: Path, trusted_key: Path | None) -> AnsweringSystem:
    system = open_bundle(folder, trusted_key)
    if not hasattr(system, "release"):
        raise InvalidInput(
            f"bundle={str(folder)!r}: holds a {type(system).__name__}, which has nothing left to "
            "release: its predictions are "
            f"post-processing and cost nothing; use {type(system).__name__}.load(folder)"
            ".predict(inputs)"
        )
    return system


def _with_local_bounds(folder: Path, trusted_key: Path | None) -> PosthocSystem:
    system = open_bundle(folder, trusted_key)
    if type(system).__name__ not in _WITH_LOCAL_BOUNDS:
        raise InvalidInput(
            f"bundle={str(folder)!r}: holds a {type(system).__name__}, expected one of "
            f"{', '.join(_WITH_LOCAL_BOUNDS)}, whose "
            "noise rests on bounds around single inputs; `reticent card` says what this one "
            "rests on"
        )
    return cast("PosthocSystem", system)


def read_inputs(
    path: Path,
    system: AnsweringSystem,
    *,
    name: str = "input",
    ignore: Sequence[str],
    subject_column: str | None,
) -> tuple[Any, Sequence[str] | None]:
    """The inputs, and the subject of each where a column names them.

    An .npy file holds them by position; the columns of any other file are found by name.
    """
    from reticent.cli.arrays import NPY, read_rows_by_position, starts_with
    from reticent.release.system import columns_of
    from reticent.tables.batches import file_kind, read_whole

    if starts_with(path, NPY) or path.suffix == ".npy":
        where = f"{name}={str(path)!r}"
        if ignore or subject_column is not None:
            raise InvalidInput(
                f"{where}: an .npy file has no column names for --ignore-column or "
                "--subject-column; take columns out, or pass a CSV or Parquet file"
            )
        schema = getattr(system.query_, "schema", None)
        return read_rows_by_position(path, schema, name=name), None
    if not path.exists() or path.is_dir():  # a pipe may be read once, and is not looked at here
        file_kind(path, name=name)
    columns = columns_of(system, name=name)
    found = read_whole(path, columns, ignore=ignore, subject_column=subject_column, name=name)
    return found.rows, found.subjects


def _numbers_per_answer(system: AnsweringSystem) -> int:
    """8-byte numbers that one answer takes in a file, at most; a label in words takes 4 bytes a
    letter.
    """
    import numpy as np

    from reticent.systems import PowerEncoder
    from reticent.systems.power.published import PublishedQuery

    if isinstance(system, PowerEncoder):
        assert not isinstance(system.query_, PublishedQuery)  # this mode is never stored
        return system.query_.outputs
    if type(system).__name__ == "PosthocEncoder":
        return cast("PosthocEncoder", system).query_.network.output_dimension
    labels: list[Any] = np.asarray(system.classes_).tolist()
    return 1 + max(len(str(label)) for label in labels) // 2
