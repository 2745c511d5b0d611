"""Commands on a fitted bundle, whatever system it holds: certify, release, card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from reticent.core.checks import finite_array, positive
from reticent.core.errors import InvalidInput
from reticent.core.files import output_file
from reticent.core.signatures import check_signing_key

if TYPE_CHECKING:
    import numpy.typing as npt

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
            help=".npy file with one input per row, in the units seen in training; for rows of "
            "a table also a .csv or .csv.gz "
            "file, with the schema's column names in its first line.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(help=".npz file to write: values, withheld, receipt (JSON text as bytes)."),
    ],
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
) -> None:
    """Answer every input row with the bundle's guarantee, and write the answers whole or not at
    all.

    Each row costs the epsilon and delta that `reticent card` shows, withheld or not. With
    --subject-column every row is charged to its own subject, all of them or none. Noise comes
    from the operating system; there is no seed.
    """
    import numpy as np

    from reticent.cli.arrays import release_content, release_size

    system = _answering(bundle, trusted_key)
    if key is not None:
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
    inputs, subjects = read_inputs(
        input_, system, ignore=ignore_column or (), subject_column=subject_column
    )
    room = release_size(len(np.atleast_1d(inputs)), _numbers_per_answer(system))
    with ExitStack() as stack:
        put = stack.enter_context(output_file(output, size=room, overwrite=overwrite))
        if ledger is None:
            answers = system.release(inputs)
        else:
            from reticent.core.scopes import Scope
            from reticent.ledger.ledger import Ledger

            book = Ledger.open(ledger)
            stack.callback(book.close)
            whole = Scope(principal=client, subject=subject, bundle=system.bundle_identity_)
            scope = (
                whole if subjects is None else [replace(whole, subject=name) for name in subjects]
            )
            answers = system.release(inputs, ledger=book, scope=scope)
        put(release_content(answers, key=key))
    charged = "" if subjects is None else f"; charged to {len(set(subjects))} subject(s)"
    typer.echo(
        f"{answers.receipt.describe()}{charged}; {int(answers.withheld.sum())} withheld; "
        f"written to {output}"
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

    return load(folder, trusted_key=trusted_key)


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
) -> tuple[npt.NDArray[Any], list[str] | None]:
    """The inputs, and the subject of each where a column names them."""
    from reticent.cli.arrays import read_array
    from reticent.cli.tables import read_table, read_table_of_subjects
    from reticent.systems import PowerEncoder

    if isinstance(system, PowerEncoder):
        schema = system.query_.schema
        if subject_column is not None:
            return read_table_of_subjects(
                path, schema, subject_column=subject_column, ignore=ignore, name=name
            )
        return read_table(path, schema, ignore=ignore, name=name), None
    for option, given in (
        ("ignore_column", bool(ignore)),
        ("subject_column", subject_column is not None),
    ):
        if given:
            raise InvalidInput(
                f"{option}: is for rows of a table; the inputs of a {type(system).__name__} have "
                "no column names"
            )
    return read_array(path, name=name), None


def _numbers_per_answer(system: AnsweringSystem) -> int:
    """8-byte numbers that one answer takes in a file, at most; a label in words takes 4 bytes a
    letter.
    """
    import numpy as np

    from reticent.systems import PowerEncoder
    from reticent.systems.power.query import PowerQuery

    if isinstance(system, PowerEncoder):
        assert isinstance(system.query_, PowerQuery)  # the published mode is never stored
        return system.query_.outputs
    if type(system).__name__ == "PosthocEncoder":
        return cast("PosthocEncoder", system).query_.network.output_dimension
    labels: list[Any] = np.asarray(system.classes_).tolist()
    return 1 + max(len(str(label)) for label in labels) // 2
