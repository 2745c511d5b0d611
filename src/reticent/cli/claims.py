"""``reticent audit function``: test the stated guarantee of anything that answers."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli.options import Alpha, Overwrite, Page, SchemaFile
from reticent.core.errors import GuaranteeRefuted, InvalidInput, InvalidParameter
from reticent.core.files import output_file

if TYPE_CHECKING:
    from reticent.audit.neighbour_pairs import NeighbourPair
    from reticent.audit.subjects import Subject

_ROOM = 2**18


def function(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="SUBJECT",
            help="One of: MODULE:FUNCTION of one data set, MODULE:ESTIMATOR (with --queries), an "
            "http address, scores.npz with the arrays first and second, a command (with "
            "--command).",
        ),
    ],
    claim: Annotated[
        str,
        typer.Option(
            metavar="EPSILON,DELTA", help="Claim, such as 1,1e-5, or mu=0.5 for Gaussian noise."
        ),
    ],
    neighbours: Annotated[
        str | None,
        typer.Option(
            metavar="PAIRS",
            help='File of JSON lines {"first": ..., "second": ...}, or MODULE:GENERATOR of pairs.',
        ),
    ] = None,
    schema: SchemaFile = None,
    search: Annotated[
        Path | None,
        typer.Option(
            metavar="JSON",
            help='Data set, a list of records or {"X": rows, "y": labels}, to search neighbours '
            "around; at the ends of --schema, if given.",
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Search changed records instead of one record more or less."
        ),
    ] = False,
    person: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Search all records of one person, named by this key."),
    ] = None,
    command: Annotated[
        bool, typer.Option("--command", help="SUBJECT is a command: one JSON line in, one out.")
    ] = False,
    anew: Annotated[
        bool,
        typer.Option(
            "--anew", help="Start the command for each answer: for one that reads its whole input."
        ),
    ] = False,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="JSON", help="Public rows that an estimator predicts after each fit."),
    ] = None,
    remote: Annotated[
        bool, typer.Option("--remote", help="Allow an address that is not this machine.")
    ] = False,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="LAW=SCALE", help="Stated noise of one number: gaussian=3 or laplace=2."
        ),
    ] = None,
    sensitivity: Annotated[
        float | None,
        typer.Option(
            help="Stated l1 change of the answer before the noise: compares it with --exact, and "
            "the exact law of --noise with the claim."
        ),
    ] = None,
    exact: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION", help="Answer before the noise, if the subject shows it."
        ),
    ] = None,
    implementation: Annotated[
        bool,
        typer.Option("--implementation", help="Test forks, times, state and exceptions too."),
    ] = False,
    draws: Annotated[int, typer.Option(help="Most draws.")] = 20_000,
    seconds: Annotated[float, typer.Option(help="Time limit.")] = 120.0,
    alpha: Alpha = 0.001,
    seed: Annotated[int | None, typer.Option(help="Seed of coins, never the subject's.")] = None,
    source: Annotated[str, typer.Option(help="Sentence that makes the claim.")] = "",
    protected: Annotated[str, typer.Option(help="Protected data.")] = "not said",
    unit: Annotated[str, typer.Option(help="Unit of privacy: a record, a person.")] = "not said",
    trust: Annotated[
        str, typer.Option(help="Parties that see the data or the answers.")
    ] = "not said",
    page: Page = None,
    output: Annotated[
        Path | None, typer.Option(metavar="JSON", help="Report to write as JSON.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="PEM", help="Private key that signs report and page.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Test a stated epsilon and delta of anything that answers about a data set.

    A fair coin chooses one of two neighbours for every draw. A test that may be stopped at any
    time bets on the coin. It ends as soon as the claim is refuted. The noise is the subject's own.

    The exit status is 19 if the claim is refuted. An audit never proves a claim.
    """
    from reticent.audit.claim_page import (
        claim_page,
        claim_report,
        signed_page,
        signed_report,
    )
    from reticent.audit.claims import claim as audit_claim
    from reticent.audit.subjects import named_object
    from reticent.cli.files import check_page, write_page
    from reticent.core.files import check_replaceable
    from reticent.core.signatures import check_signing_key
    from reticent.core.strict_json import strict_dumps
    from reticent.training.progress import bar

    stated = _claim(claim)
    check_page(page, overwrite=overwrite)
    if output is not None:
        check_replaceable(output, overwrite=overwrite)
    if key is not None:
        if output is None and page is None:
            raise InvalidInput("key: expected --output or --page, which it signs")
        check_signing_key(key)
    if sensitivity is not None and noise is None and exact is None:
        raise InvalidInput("sensitivity: expected --noise or --exact, to compare it with")
    if anew and not command:
        raise InvalidInput("anew: expected --command")
    run = _subject(
        subject, command=command, anew=anew, queries=queries, remote=remote, seconds=seconds
    )
    pairs = _pairs(neighbours, schema, search, replace=replace, person=person)
    words = {"protected": protected, "unit": unit, "trust": trust}
    try:
        with bar() as report:
            found = audit_claim(
                run,
                neighbours=pairs,
                **stated,
                noise=_noise(noise),
                sensitivity=sensitivity,
                exact=None if exact is None else named_object(exact),
                alpha=alpha,
                draws=draws,
                seconds=seconds,
                seed=seed,
                implementation=implementation,
                source=source,
                replay=shlex.join(["reticent", *sys.argv[1:]]),
                report=report,
            )
    finally:
        run.close()
    typer.echo(found.summary)
    for one in found.findings:
        typer.echo(f"{one.kind}: {one.event} ({one.witness})")
    if output is not None:
        values = claim_report(found, **words)
        content = strict_dumps(values) if key is None else signed_report(values, key)
        with output_file(output, size=_ROOM, overwrite=overwrite) as put:
            put(content)

    def shown() -> str | bytes:
        text = claim_page(found, **words)
        return text if key is None else signed_page(text, key)

    write_page(page, shown, overwrite=overwrite)
    if found.refuted:
        raise GuaranteeRefuted(f"subject={found.subject!r}: claims {found.claim_words}; refuted")


def _claim(text: str) -> dict[str, Any]:
    try:
        if text.startswith("mu="):
            return {"mu": float(text[3:])}
        epsilon, delta = text.split(",")
        return {"epsilon": float(epsilon), "delta": float(delta)}
    except ValueError as error:
        raise InvalidParameter(f"claim={text!r}: expected EPSILON,DELTA or mu=NUMBER") from error


def _noise(text: str | None) -> tuple[str, float] | None:
    if text is None:
        return None
    law, _, scale = text.partition("=")
    try:
        return law, float(scale)
    except ValueError as error:
        raise InvalidParameter(f"noise={text!r}: expected LAW=SCALE") from error


def _subject(
    name: str,
    *,
    command: bool,
    anew: bool,
    queries: Path | None,
    remote: bool,
    seconds: float,
) -> Subject:
    from reticent.audit.subjects import (
        CommandSubject,
        EstimatorSubject,
        FunctionSubject,
        HttpSubject,
        RecordedScores,
        named_object,
    )

    if command:
        return CommandSubject(name, anew=anew, seconds=min(60.0, seconds))
    if name.startswith(("http://", "https://")):
        return HttpSubject(name, remote=remote, seconds=min(30.0, seconds))
    if name.endswith(".npz"):
        return RecordedScores.read(name)
    found = named_object(name)
    if queries is not None:
        estimator = found() if isinstance(found, type) else found
        return EstimatorSubject(estimator, queries=_json(queries))
    if hasattr(found, "fit"):
        raise InvalidInput(f"{name!r}: expected --queries, rows that an estimator predicts")
    return FunctionSubject(found, name=name)


def _pairs(
    neighbours: str | None,
    schema: Path | None,
    search: Path | None,
    *,
    replace: bool,
    person: str | None,
) -> tuple[NeighbourPair, ...] | None:
    from reticent.audit.neighbour_pairs import (
        checked_pairs,
        read_pairs,
        schema_pairs,
        searched_pairs,
    )
    from reticent.audit.subjects import named_object
    from reticent.tables.schema import TabularSchema

    if neighbours is not None and (schema is not None or search is not None):
        raise InvalidInput("neighbours: expected no schema or search besides")
    ends = None if schema is None else TabularSchema.read(schema)
    if search is not None:
        return searched_pairs(_json(search), replace=replace, person=person, schema=ends)
    if ends is not None:
        return schema_pairs(ends)
    if neighbours is None:
        return None
    if Path(neighbours).exists() or ":" not in neighbours:
        return read_pairs(neighbours)
    found = named_object(neighbours)
    return checked_pairs(found() if callable(found) else found)


def _json(path: Path) -> Any:
    from reticent.core.files import read_regular

    try:
        return json.loads(read_regular(path, most=2**28))
    except InvalidInput as error:
        raise InvalidInput(f"{str(path)!r}: {error}") from error
    except ValueError as error:
        raise InvalidInput(f"{str(path)!r}: expected JSON") from error
