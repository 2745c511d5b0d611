"""`reticent shuffle` and `reticent aggregate`: the two servers of a fleet, and their rounds."""

from __future__ import annotations

import json
import math
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent.cli.options import (
    BehindProxy,
    Delta,
    DrawnSeed,
    Epsilon,
    Json,
    LedgerUrl,
    Overwrite,
    SchemaFile,
    group,
)
from reticent.core.errors import InvalidInput

shuffle_app = group(
    "Collect sealed reports of many devices, and forward them without their senders."
)
aggregate_app = group("Plan rounds of reports, and count what a shuffler forwards.")

RoundFile = Annotated[Path, typer.Argument(metavar="ROUND", help="File of the signed round.")]
Home = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Folder with this party's private keys.")
]
Trusted = Annotated[Path, typer.Option(metavar="PEM", help="Public Ed25519 key of the aggregator.")]
Bundle = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Bundle that devices draw their codes from.")
]
Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Database of what this party keeps. Default: a file in its home."
    ),
]
Host = Annotated[str, typer.Option(help="Address to bind.")]
Port = Annotated[int, typer.Option(help="Port to bind.")]

_PUBLIC = "public.json"


@shuffle_app.command(name="keys")
@aggregate_app.command(name="keys")
def make_keys(
    home: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to make them in.")],
) -> None:
    """Make the private keys of a party, and a file of the public ones for the others.

    The folder gets a key that signs, a key that opens sealed reports, and public.json.
    """
    from reticent.core.signatures import opening_key, signing_key, write_key_pair
    from reticent.core.strict_json import strict_dumps
    from reticent.fleet.shuffler import SEALING, SIGNING

    write_key_pair(home / SIGNING)
    write_key_pair(home / SEALING, sealing=True)
    public = {
        "sealing": opening_key(home / SEALING).public_key().public_bytes_raw().hex(),
        "signing": signing_key(home / SIGNING).public_key().public_bytes_raw().hex(),
    }
    (home / _PUBLIC).write_bytes(strict_dumps(public))
    typer.echo(f"public keys, for the others: {home / _PUBLIC}")


@shuffle_app.command()
def tokens(
    round_file: RoundFile,
    home: Home,
    trusted_key: Trusted,
    devices: Annotated[int, typer.Option(min=1, help="Number of devices to enrol.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="File to write, one token a line.")],
    overwrite: Overwrite = False,
) -> None:
    """Make one enrolment token for each device of a round.

    Give each device one token, and give none to anybody else: whoever has many tokens has many
    votes.
    """
    from reticent.core.files import output_file
    from reticent.core.signatures import signing_key
    from reticent.fleet import Round
    from reticent.fleet.sealing import enrolled
    from reticent.fleet.shuffler import SIGNING

    round_ = Round.read(round_file, trusted_key=trusted_key)
    key = signing_key(home / SIGNING)
    if key.public_key().public_bytes_raw().hex() != round_.signer:
        raise InvalidInput(f"home={str(home)!r}: its key is not that of the round's shuffler")
    made = enrolled(round_, key=key, devices=devices)
    content = "".join(f"{token.hex()}\n" for token in made).encode()
    with output_file(output, size=len(content), overwrite=overwrite, private=True) as put:
        put(content)
    typer.echo(f"{devices} tokens: {output}")


@shuffle_app.command(name="serve")
def serve_shuffler(
    round_file: RoundFile,
    home: Home,
    trusted_key: Trusted,
    to: Annotated[str, typer.Option(metavar="URL", help="Address of the aggregator.")],
    database: Database = None,
    host: Host = "127.0.0.1",
    port: Port = 8001,
    behind_proxy: BehindProxy = False,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Forward over plain http to another machine.")
    ] = False,
) -> None:
    """Take the reports of one round over HTTP, and forward them once it is closed.

    The round closes when all enrolled devices have reported, or at its end. Without enough reports
    it is void, and nothing is forwarded.
    """
    from reticent.service.fleet import ShufflerServing, run_round

    run_round(
        ShufflerServing(
            round=round_file,
            home=home,
            trusted_key=trusted_key,
            to=to,
            database=database,
            host=host,
            port=port,
            behind_proxy=behind_proxy,
            insecure=insecure,
        )
    )


@aggregate_app.command()
def plan(
    devices: Annotated[int, typer.Option(min=2, help="Honest devices that will send a report.")],
    epsilon: Epsilon,
    delta: Delta,
    labels: Annotated[
        list[int] | None,
        typer.Option(min=2, help="Number of labels. May be repeated. Default: 2 to 64."),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(metavar="ROWS", help="PUBLIC rows, to plan a code of --target instead."),
    ] = None,
    schema: SchemaFile = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column to tell shares of. May be repeated."),
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Bundle of the planned code to write.")
    ] = None,
    seed: DrawnSeed = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Show which local epsilon a central target allows, and how well shares are then known.

    The error is the standard error of one label's share where all labels are equally frequent.
    With --public, --schema and --target it fits the code with the largest local epsilon, and says
    how many codes it has and what it is worth.
    """
    if (public is None, schema is None, not target) not in ((True,) * 3, (False,) * 3):
        raise InvalidInput("public, schema, target: expected all of them or none")
    if (bundle is not None) if public is None else labels:
        raise InvalidInput(
            "bundle, labels: expected the first with --public, and the other without"
        )
    if public is not None and schema is not None and target:
        found = _planned(public, schema, target, bundle, seed, devices, epsilon, delta, overwrite)
        typer.echo(json.dumps(found, indent=2) if as_json else _told(found))
        return
    from reticent.accounting import local_epsilon_for

    rows = []
    for size in labels or [2, 4, 8, 16, 32, 64]:
        local = local_epsilon_for(devices=devices, labels=size, epsilon=epsilon, delta=delta)
        lie = 1.0 / (math.exp(local) + size - 1)
        seen = 1.0 / size
        error = math.sqrt(seen * (1 - seen) / devices) / ((math.exp(local) - 1) * lie)
        rows.append({"labels": size, "local_epsilon": local, "error": error})
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    typer.echo("labels  local epsilon  error of a share")
    for row in rows:
        typer.echo(f"{row['labels']:6}  {row['local_epsilon']:13.3f}  {row['error']:16.4f}")


def _planned(
    public: Path,
    schema: Path,
    targets: list[str],
    bundle: Path | None,
    seed: int | None,
    devices: int,
    epsilon: float,
    delta: float,
    overwrite: bool,
) -> dict[str, Any]:
    from reticent.cli.files import read_rows
    from reticent.core.files import check_folder_replaceable
    from reticent.fleet.plans import planned_code
    from reticent.release.bundle import MARKER
    from reticent.systems.power.code_encoder import CodeEncoder
    from reticent.tables.schema import TabularSchema

    if bundle is not None:
        check_folder_replaceable(bundle, marker=MARKER, overwrite=overwrite)
    known = TabularSchema.read(schema)
    encoder = CodeEncoder(epsilon=epsilon, schema=known, targets=tuple(targets), random_state=seed)
    rows = read_rows(public, schema=known, name="public").inputs
    found = planned_code(encoder, rows, devices=devices, epsilon=epsilon, delta=delta)
    if bundle is not None:
        found.encoder.save(bundle, overwrite=overwrite)
    return found.to_dict()


def _told(plan: dict[str, Any]) -> str:
    size = f"{plan['devices']} devices, local epsilon {plan['local_epsilon']:.3f}"
    promise = f"central epsilon {plan['central']:.4g} at delta {plan['delta']:g}"
    lines = [
        f"{size}, {plan['codes']} codes: {promise}",
        "target                    nats a report     shares, 95 %",
    ]
    for name, worth in plan["targets"].items():
        nats = f"{worth['nats']:.3f} +- {worth['error']:.3f}"
        lines.append(f"{name!s:24.24}  {nats:16}  +- {worth['interval']:.4f}")
    return "\n".join(lines)


@aggregate_app.command(name="round")
def make_round(
    round_file: RoundFile,
    bundle: Bundle,
    home: Home,
    shuffler: Annotated[
        Path, typer.Option(metavar="JSON", help="The shuffler's public keys, its public.json.")
    ],
    campaign: Annotated[str, typer.Option(help="Campaign whose rounds add up.")],
    number: Annotated[int, typer.Option(min=1, help="Position of the round in its campaign.")],
    least: Annotated[int, typer.Option(min=1, help="Reports below which nothing is forwarded.")],
    most: Annotated[int, typer.Option(min=1, help="Reports at which the round closes early.")],
    assumed_hostile: Annotated[
        int, typer.Option(min=0, help="Devices that an attacker may own or impersonate.")
    ],
    delta: Delta,
    hours: Annotated[float, typer.Option(min=0.0, help="Hours after which the round closes.")],
) -> None:
    """Plan a round, sign it, and print its card with both guarantees."""
    from reticent.core.files import read_regular
    from reticent.core.signatures import opening_key
    from reticent.core.strict_json import strict_loads
    from reticent.fleet import Round
    from reticent.fleet.shuffler import SEALING, SIGNING
    from reticent.systems.power.code_encoder import CodeEncoder

    public = strict_loads(read_regular(shuffler, most=2**12))
    if not isinstance(public, dict) or set(public) != {"sealing", "signing"}:
        raise InvalidInput(f"shuffler={str(shuffler)!r}: expected the shuffler's public.json")
    round_ = Round.planned(
        CodeEncoder.load(bundle),
        campaign=campaign,
        number=number,
        least=least,
        most=most,
        hostile=assumed_hostile,
        closes=int(time.time() + 3600 * hours),
        delta=delta,
        aggregator=opening_key(home / SEALING).public_key().public_bytes_raw().hex(),
        shuffler=public["sealing"],
        signer=public["signing"],
    )
    round_.write(round_file, key=home / SIGNING)
    typer.echo(round_.card().to_markdown())


@aggregate_app.command()
def grant(
    round_file: RoundFile, trusted_key: Trusted, ledger: LedgerUrl, epsilon: Epsilon, delta: Delta
) -> None:
    """Give the campaign of a round a budget, or more of it, in a ledger that is made if need be."""
    from reticent.core.guarantees import Guarantee
    from reticent.fleet import Round
    from reticent.fleet.aggregator import scope_of
    from reticent.ledger import Ledger

    round_ = Round.read(round_file, trusted_key=trusted_key)
    with closing(Ledger.create(ledger)) as book:
        total = Guarantee(epsilon, delta, round_.guarantee.adjacency)
        typer.echo(book.grant(scope_of(round_), total).describe())


@aggregate_app.command(name="serve")
def serve_aggregator(
    round_file: RoundFile,
    bundle: Bundle,
    home: Home,
    trusted_key: Trusted,
    ledger: LedgerUrl,
    database: Database = None,
    host: Host = "127.0.0.1",
    port: Port = 8002,
    behind_proxy: BehindProxy = False,
) -> None:
    """Take what the shuffler of one round forwards over HTTP, charge the campaign, and count it."""
    from reticent.service.fleet import AggregatorServing, run_round

    run_round(
        AggregatorServing(
            round=round_file,
            bundle=bundle,
            home=home,
            trusted_key=trusted_key,
            ledger=ledger,
            database=database,
            host=host,
            port=port,
            behind_proxy=behind_proxy,
        )
    )


@aggregate_app.command()
def result(
    round_file: RoundFile,
    bundle: Bundle,
    home: Home,
    trusted_key: Trusted,
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Print the shares that a counted round tells of, with 95 % intervals."""
    from reticent.fleet import Round
    from reticent.fleet.aggregator import counted
    from reticent.systems.power.code_encoder import CodeEncoder

    round_ = Round.read(round_file, trusted_key=trusted_key)
    encoder = CodeEncoder.load(bundle, trusted_key=trusted_key)
    found = counted(round_, home, database=database).report(encoder)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(f"{sum(found['counts'])} reports counted, {found['refused']} refused")
    for target, shares in found["labels"].items():
        kind = "" if shares["unbiased"] else " (in part as among the public rows)"
        typer.echo(f"{target}{kind}:")
        for name, share, (low, high) in zip(
            shares["names"], shares["shares"], shares["intervals"], strict=True
        ):
            typer.echo(f"  {name!s:24.24}  {share:.4f} +- {(high - low) / 2:.4f}")
    typer.echo(f"receipt: {found['receipt']['booked']}")
