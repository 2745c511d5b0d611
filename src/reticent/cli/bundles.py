"""Commands on a fitted bundle, whatever system it holds: card, certify, release, sign, verify."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from reticent.cli.ledger import booking
from reticent.cli.options import (
    ArrayName,
    BundleFolder,
    Embedder,
    IgnoreColumns,
    InputRows,
    Jobs,
    Json,
    OptionalLedger,
    Overwrite,
    Principal,
    Research,
    SigningKey,
    Subject,
    SubjectColumn,
    TableFormat,
    TrustedKey,
)
from reticent.core.checks import check_jobs, finite_array, positive
from reticent.core.errors import InvalidInput
from reticent.core.files import output_file

if TYPE_CHECKING:
    from reticent.cli.files import Rows
    from reticent.core.releases import Release
    from reticent.systems import PosthocEncoder, PowerEncoder
    from reticent.systems.certified.system import CertifiedSystem
    from reticent.systems.posthoc.system import PosthocSystem

    System = PosthocSystem | CertifiedSystem | PowerEncoder
    AnsweringSystem = PosthocSystem | CertifiedSystem | PowerEncoder

_LARGEST_AUDIT = 2**24

_WITH_LOCAL_BOUNDS = ("PosthocEncoder", "PosthocClassifier")
"""Systems by name: their modules load torch, which most bundles do not need."""


def release(
    bundle: BundleFolder,
    input_: InputRows,
    output: Annotated[
        Path,
        typer.Option(
            help=".npz (values, withheld, receipt as JSON text in bytes), .csv, .parquet or "
            ".arrow file. A folder with --rows-per-part or --cluster."
        ),
    ],
    further: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Further files of rows, with --cluster. A shell lists them for rows/*.parquet.",
        ),
    ] = None,
    ledger: OptionalLedger = None,
    principal: Principal = "",
    subject: Subject = "",
    subject_column: SubjectColumn = None,
    array: ArrayName = None,
    ignore_column: IgnoreColumns = None,
    trusted_key: TrustedKey = None,
    embedder: Embedder = None,
    signing_key: SigningKey = None,
    overwrite: Overwrite = False,
    rows_per_part: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS",
            help="Answer a file of any size in parts, each charged by itself. To go on after an "
            "interruption, repeat the command.",
        ),
    ] = None,
    format_: Annotated[
        TableFormat | None,
        typer.Option(
            "--format", help="Format of parts, with --rows-per-part or --cluster. Default: parquet."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Scheduler of a Dask cluster, such as tcp://host:8786. Its workers answer every "
            "file into a folder of its own. They must reach bundle, files and ledger under the "
            "names given here.",
        ),
    ] = None,
    jobs: Jobs = None,
    research: Research = False,
) -> None:
    """Answer every input row with the bundle's guarantee. Write all answers or none.

    Each row costs the epsilon and delta that `reticent card` shows, withheld or not. The cost is
    booked if a ledger is named. With --subject-column every row is charged to its own subject, all
    of them or none. Noise comes from the operating system and has no seed.
    """
    import numpy as np
    from joblib import parallel_config

    from reticent.cli.files import ANSWERS, format_of, release_content, release_size
    from reticent.core.signatures import check_signing_key

    sources = [input_, *(further or ())]
    in_parts = rows_per_part is not None or cluster is not None
    people = bool(principal or subject or subject_column is not None)
    _refuse(
        (
            people and ledger is None,
            "principal, subject, subject_column: expected together with --ledger",
        ),
        (
            bool(subject) and subject_column is not None,
            "subject, subject_column: expected one of them, for all rows or for each",
        ),
        (
            len(sources) > 1 and cluster is None,
            f"input: expected one file, or --cluster for several; got {len(sources)}",
        ),
        (
            format_ is not None and not in_parts,
            "format: expected together with --rows-per-part or --cluster; --output says it else",
        ),
        (
            array is not None and in_parts,
            "array: expected without --rows-per-part and --cluster, which read tables",
        ),
        (
            embedder is not None and (in_parts or jobs is not None),
            "embedder: expected without --rows-per-part, --cluster and --jobs",
        ),
        (
            jobs is not None and in_parts,
            "jobs: expected without --rows-per-part, which takes parts in turn, and --cluster",
        ),
        (
            overwrite and in_parts,
            "overwrite: parts are never replaced; choose a new folder, or go on without it",
        ),
        (
            research and (ledger is not None or people or signing_key is not None),
            (
                "research: nothing is booked and no receipt is written; expected without --ledger, "
                "--principal, --subject, --subject-column and --signing-key"
            ),
        ),
        (
            research and (in_parts or jobs is not None),
            "research: expected without --rows-per-part, --cluster and --jobs",
        ),
    )
    system = answering_system(bundle, trusted_key, embedder, research=research)
    kind = "" if in_parts else format_of(output, ANSWERS)
    if research:
        answers: Any = system.release(read_inputs(input_, system, array, ignore_column).inputs)
        content = release_content(answers, kind)
        with output_file(output, size=len(content), overwrite=overwrite) as put:
            put(content)
        typer.echo(
            f"{len(answers.withheld)} answer(s), {int(answers.withheld.sum())} withheld; written "
            f"to {output}"
        )
        tell_totals(system)
        return
    if signing_key is not None:
        check_signing_key(signing_key)
        if not in_parts and kind != "npz":
            raise InvalidInput(
                "signing_key: a signature has its place in an .npz file, or beside parts "
                f"(--rows-per-part); got output={str(output)!r}"
            )
    parts: dict[str, Any] = {
        "rows": rows_per_part,
        "format": format_ or "parquet",
        "ignore": tuple(ignore_column or ()),
        "subject_column": subject_column,
        "key": signing_key,
    }
    with booking(ledger, principal, subject, system.bundle_identity_) as books:
        if cluster is not None:
            places = {
                "bundle": bundle.resolve(),
                "trusted_key": None if trusted_key is None else trusted_key.resolve(),
                "key": None if signing_key is None else signing_key.resolve(),
                "ledger": _reachable(ledger),
            }
            _on_cluster(cluster, sources, output, {**parts, **places, "scope": books.get("scope")})
        elif in_parts:
            _tell_parts(system.release_stream(input_, output, **books, **parts), output)
        else:
            found = read_inputs(input_, system, array, ignore_column, beside=subject_column)
            inputs, subjects = found.inputs, found.names or ()
            rows = len(inputs) if hasattr(inputs, "columns") else len(np.atleast_1d(inputs))
            room = release_size(rows, _numbers_per_answer(system), kind)
            check_jobs(jobs)
            workers = nullcontext() if jobs is None else parallel_config(n_jobs=jobs)
            if subjects:
                books["scope"] = [replace(books["scope"], subject=name) for name in subjects]
            with output_file(output, size=room, overwrite=overwrite) as put, workers:
                answers = system.release(inputs, **books)
                put(release_content(answers, kind, key=signing_key))
            charged = f"; charged to {len(set(subjects))} subject(s)" if subjects else ""
            typer.echo(
                f"{answers.receipt.describe()}{charged}; {int(answers.withheld.sum())} withheld; "
                f"written to {output}"
            )


def predict(
    bundle: BundleFolder,
    input_: InputRows,
    output: Annotated[
        Path,
        typer.Option(help=".npz (predictions), .csv, .parquet or .arrow file."),
    ],
    array: ArrayName = None,
    ignore_column: IgnoreColumns = None,
    trusted_key: TrustedKey = None,
    overwrite: Overwrite = False,
) -> None:
    """Write what a released model predicts of every input row.

    Predictions cost nothing, because the fit has paid for them.
    """
    import numpy as np

    from reticent.cli.files import ANSWERS, column_content, format_of, read_rows
    from reticent.tables.batches import encoded_columns

    kind = format_of(output, ANSWERS)
    system: Any = open_bundle(bundle, trusted_key)
    if hasattr(system, "release"):
        raise InvalidInput(
            f"bundle={str(bundle)!r}: holds a {type(system).__name__}, whose answers are charged; "
            "use `reticent release`"
        )
    rows = read_rows(input_, schema=system.schema_, array=array, ignore=ignore_column).inputs
    found = np.asarray(system.predict(rows))
    with output_file(output, size=8 * found.nbytes + 4096, overwrite=overwrite) as put:
        if found.ndim == 1 or kind == "npz":
            put(column_content("predictions", found, kind))
        else:
            put(encoded_columns({f"predictions{i}": each for i, each in enumerate(found.T)}, kind))
    typer.echo(f"{len(found)} prediction(s); written to {output}")


def tell_totals(system: Any) -> None:
    """Print of an algorithm as printed what its paper states and what is sound, of others
    nothing.
    """
    if hasattr(system, "totals"):
        typer.echo(f"NOT PRIVATE: {system.name}. {system.totals()}")


def _refuse(*reasons: tuple[bool, str]) -> None:
    """Refuse a command line, and name every reason that holds."""
    found = [reason for holds, reason in reasons if holds]
    if found:
        raise InvalidInput("; ".join(found))


def _on_cluster(cluster: str, sources: list[Path], output: Path, task: dict[str, Any]) -> None:
    """Answer files on the workers of a cluster. ``task`` has the fields of a ``Task``."""
    from reticent.systems.cluster import Task, release_on_cluster
    from reticent.tables.batches import LARGEST_BATCH

    written, rows, withheld = release_on_cluster(
        Task(**{**task, "rows": task["rows"] or LARGEST_BATCH}),
        sources,
        output,
        cluster=cluster,
        report=lambda source, rows: typer.echo(f"{source.name}: {rows} rows", err=True),
    )
    typer.echo(
        f"{rows} answer(s) in {written} part(s) of {len(sources)} file(s); {withheld} withheld; "
        f"in {output}"
    )


def _reachable(ledger: str | None) -> str | None:
    """Return a ledger's address for workers that run in other folders."""
    return ledger if ledger is None or "://" in ledger else str(Path(ledger).resolve())


def _tell_parts(parts: Iterable[Release], output: Path) -> None:
    """Answer part by part. Show progress on standard error, and print one line at the end."""
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
    input_: InputRows,
    radius: Annotated[
        float, typer.Option(help="Radius around each input's embedding, in the embedding's units.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(help=".npz, .csv, .parquet or .arrow file for the bound of every row."),
    ] = None,
    array: ArrayName = None,
    ignore_column: IgnoreColumns = None,
    trusted_key: TrustedKey = None,
    embedder: Embedder = None,
    research: Research = False,
    overwrite: Overwrite = False,
) -> None:
    """Prove bounds on the local Lipschitz constant around PUBLIC inputs, e.g. calibration data.

    A local constant depends on its input, so it is as private as that input. Never show anyone
    what this prints for an input that is to be protected. `release` does its own certifying, under
    the guarantee.
    """
    import numpy as np

    from reticent.cli.files import ANSWERS, column_content, format_of, print_table
    from reticent.pages.page import Table

    positive(radius, name="radius")
    kind = "" if output is None else format_of(output, ANSWERS)
    system, bound, proposal = _with_local_bounds(bundle, trusted_key, embedder, research=research)
    points = system.embed(read_inputs(input_, system, array, ignore_column).inputs)
    if output is None:
        bounds = bound.bound(points, radius)
    else:
        with output_file(output, size=40 * len(points) + 4096, overwrite=overwrite) as put:
            bounds = bound.bound(points, radius)
            put(column_content("bound", bounds, kind))
    quantiles = finite_array(np.quantile(bounds, [0.0, 0.5, 0.9, 1.0]), name="bounds")
    names = ("smallest", "median", "90 % of inputs below", "largest")
    rows = [(name, [f"{value:.6g}"]) for name, value in zip(names, quantiles, strict=True)]
    rows.append(("whole public domain", [f"{bound.global_bound():.6g}"]))
    rows.append(("proposal that the noise covers", [f"{proposal:.6g}"]))
    title = f"{len(points)} inputs, radius {radius:g}, {bound.kind}"
    print_table(Table("", ["Lipschitz bound"], rows), title)
    typer.echo("A local constant is as private as its input: for public or calibration data only.")
    tell_totals(system)


def card(
    bundle: BundleFolder,
    as_json: Json = False,
    trusted_key: TrustedKey = None,
    embedder: Embedder = None,
    research: Research = False,
) -> None:
    """Print the bundle's guarantee: what is protected, from whom, under which assumptions.

    The words are those stored in the bundle. With --json the bundle is loaded, and the card is
    made anew.
    """
    if as_json:
        made = open_bundle(bundle, trusted_key, embedder, research=research).card()
        typer.echo(json.dumps(made.to_dict(), indent=2))
        return
    from reticent.release.bundle import stored_card

    shown = stored_card(bundle, trusted_key=trusted_key, research=research)
    if not sys.stdout.isatty():
        typer.echo(shown)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(shown))


def sign(
    bundle: BundleFolder,
    signing_key: Annotated[
        Path,
        typer.Option(metavar="PEM", help="Private Ed25519 key, without a password, to sign with."),
    ],
    name: Annotated[
        str | None,
        typer.Option(help="Name under which a service must offer it. Default: its folder's name."),
    ] = None,
    edition: Annotated[
        int,
        typer.Option(min=0, help="Edition, above that of every bundle that it replaces."),
    ] = 0,
    research: Research = False,
) -> None:
    """Sign a bundle, so that others can tell that nobody else has changed it.

    An earlier signature is replaced. The signature covers every file of the bundle. A checksum
    finds damage. Only a signature finds a bundle that was edited. It covers the name and the
    edition as well: a device that has seen an edition refuses earlier ones of that name.
    """
    from reticent.release.bundle import sign_bundle

    signed = sign_bundle(bundle, key=signing_key, name=name, edition=edition, research=research)
    typer.echo(f"signed: {signed}")


def verify(
    path: Annotated[
        Path,
        typer.Argument(
            help="Folder of a bundle, .npz file that `reticent release` wrote, or .json or .html "
            "file that `reticent audit function` wrote."
        ),
    ],
    trusted_key: Annotated[
        Path,
        typer.Option(metavar="PEM", help="Public Ed25519 key of the expected signer."),
    ],
    research: Research = False,
) -> None:
    """Check that a key signed a bundle, the receipt of released values, or the audit of a claim.

    The exit status is 18 if it did not.
    """
    if path.is_dir():
        from reticent.release.bundle import Bundle

        found = Bundle.read(path, trusted_key=trusted_key, research=research)
        typer.echo(f"signed by the trusted key: a {found.system}, bundle {found.identity}")
        return
    if path.suffix in (".json", ".html"):
        from reticent.audit.claim_page import verify_audit
        from reticent.core.files import read_regular

        verify_audit(read_regular(path, most=_LARGEST_AUDIT), trusted_key=trusted_key)
        typer.echo("signed by the trusted key: the audit of a claim, as it stands in the file")
        return
    from reticent.cli.files import read_signed_receipt
    from reticent.core.signatures import verify as verify_signature

    receipt, signature = read_signed_receipt(path)
    verify_signature(receipt, signature, purpose="receipt", trusted_key=trusted_key)
    typer.echo("signed by the trusted key: the receipt. The released values are no part of it")


def open_bundle(
    folder: Path,
    trusted_key: Path | None = None,
    embedder: str | None = None,
    *,
    research: bool = False,
) -> System:
    """Return the fitted system in ``folder``, of any kind, with the user's own module where it
    needs one. If there is a ``trusted_key``, it must have signed the bundle. With ``research``
    it is an algorithm as printed, and nothing else.

    Raises:
        InvalidInput: no such folder, a system that is not known here, one that needs a module of
            the user's own, or an algorithm as printed without ``research``.
        CorruptBundle: the bundle is damaged.
        UntrustedSignature: ``trusted_key`` is given and has not signed the bundle.
    """
    from reticent.systems.loading import load

    if research:
        from reticent.published import load_research

        _refuse((embedder is not None, "research: expected without --embedder"))
        return cast("System", load_research(folder, trusted_key=trusted_key))
    own = None
    if embedder is not None:
        from reticent.audit.subjects import named_object

        own = named_object(embedder)()
    return cast("System", load(folder, trusted_key=trusted_key, embedder=own))


def answering_system(
    folder: Path, trusted_key: Path | None, embedder: str | None, *, research: bool = False
) -> AnsweringSystem:
    """Return what ``open_bundle`` does, and refuse what has no answers to release."""
    system = open_bundle(folder, trusted_key, embedder, research=research)
    if not hasattr(system, "release"):
        raise InvalidInput(
            f"bundle={str(folder)!r}: holds a {type(system).__name__}, which has nothing left to "
            "release: its predictions are post-processing and cost nothing; use `reticent predict`"
        )
    return system


def _with_local_bounds(
    folder: Path, trusted_key: Path | None, embedder: str | None, *, research: bool
) -> tuple[Any, Any, float]:
    """Return a system, its bound around single inputs, and the proposal that its noise covers."""
    system: Any = open_bundle(folder, trusted_key, embedder, research=research)
    kind = type(system).__name__
    if kind == "PublishedPosthocEncoder":
        return system, system.bound_, system.proposal_
    if kind not in _WITH_LOCAL_BOUNDS:
        raise InvalidInput(
            f"bundle={str(folder)!r}: holds a {kind}, expected one of "
            f"{', '.join(_WITH_LOCAL_BOUNDS)}, whose "
            "noise rests on bounds around single inputs; `reticent card` says what this one "
            "rests on"
        )
    return system, system.query_.bound, system.query_.plan.proposal


def read_inputs(
    path: Path,
    system: System,
    array: str | None,
    ignore: Sequence[str] | None,
    *,
    beside: str | None = None,
) -> Rows:
    """Return the rows of a file as ``system`` takes them. The arguments go to ``read_rows``."""
    from reticent.cli.files import read_rows

    return read_rows(path, system=system, array=array, ignore=ignore, beside=beside)


def _numbers_per_answer(system: AnsweringSystem) -> int:
    """Return how many 8-byte numbers one answer takes in a file at most.

    A label in words takes 4 bytes a letter.
    """
    import numpy as np

    from reticent.systems import PowerEncoder

    if isinstance(system, PowerEncoder):
        return system.query_.outputs
    if type(system).__name__ == "PosthocEncoder":
        return cast("PosthocEncoder", system).query_.outputs
    labels: list[Any] = np.asarray(system.classes_).tolist()
    return 1 + max(len(str(label)) for label in labels) // 2
