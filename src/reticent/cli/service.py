"""`reticent serve`, and care for a service: its keys, stored answers and models."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from reticent.cli.ledger import opened
from reticent.cli.options import (
    BehindProxy,
    BundleFolder,
    Embedder,
    Json,
    LedgerUrl,
    OptionalLedger,
    Overwrite,
    SigningKey,
    TrainingSeed,
    TrustedKey,
    group,
)
from reticent.core.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

keys_app = group(
    "Manage the service's keys: who may ask, for which bundles, about whom, until when."
)
service_app = group("Manage the data that the service keeps beside its ledger.")


def serve(
    bundles: Annotated[
        Path | None, typer.Option(help="Folder with one fitted bundle in each folder of it.")
    ] = None,
    ledger: OptionalLedger = None,
    signing_key: SigningKey = None,
    trusted_key: TrustedKey = None,
    models: Annotated[
        Path | None, typer.Option(help="Folder with models that were trained on released values.")
    ] = None,
    trusted_with: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BUNDLE",
            help="Name of a bundle whose raw rows this server may see. May be repeated.",
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to bind. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind. Default: 8000.")] = None,
    behind_proxy: BehindProxy = False,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: 1.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="TOML", help="File with these and further settings (docs/service.md)."
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Make a bundle, a ledger and a key in a temporary folder."),
    ] = False,
) -> None:
    """Answer over HTTP from fitted bundles, and charge a ledger before anything is drawn.

    Flags override RETICENT_SERVE_NAME in the environment, and these override the TOML file. On
    SIGTERM and Ctrl-C the service finishes the requests under way.
    """
    from reticent.service.server import serve as run
    from reticent.service.settings import Settings

    given = {
        "bundles": bundles,
        "ledger": ledger,
        "signing_key": signing_key,
        "trusted_key": trusted_key,
        "models": models,
        "trusted_with": tuple(trusted_with) if trusted_with else None,
        "host": host,
        "port": port,
        "behind_proxy": behind_proxy or None,
        "workers": workers,
    }
    if not demo:
        run(Settings.gathered(given, file=config))
        return
    made = ("bundles", "ledger", "signing_key", "trusted_key", "models", "trusted_with")
    if config is not None or any(given[name] is not None for name in made):
        raise InvalidInput(
            "demo: makes its own bundle and ledger; expected only host, port, workers"
        )
    from reticent.service.demo import prepare

    with tempfile.TemporaryDirectory(prefix="reticent-serve-") as folder:
        prepared = prepare(Path(folder))
        settings = Settings.gathered(given | prepared.given, environment={})
        typer.echo(prepared.snippet(f"http://{settings.host}:{settings.port}"), err=True)
        run(settings)


@keys_app.command()
def create(
    ledger: LedgerUrl,
    principal: Annotated[
        str, typer.Option(metavar="NAME", help="Client that will ask, by its name in the ledger.")
    ],
    bundle: Annotated[
        list[str] | None,
        typer.Option(
            help="Identity or name of a bundle that it may ask, or * for all. May be repeated."
        ),
    ] = None,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            help="Subject that it may charge. A name that ends in * stands for all that begin so. "
            "May be repeated."
        ),
    ] = None,
    role: Annotated[
        Literal["client", "owner"],
        typer.Option(help="An owner sees budgets, keys and metrics, and cannot ask for answers."),
    ] = "client",
    days: Annotated[
        float | None, typer.Option(help="Days until it expires. Without this it does not.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key, and print it once: only a digest of it is kept."""
    from reticent.service.keys import KeyStore

    with opened(ledger) as book:
        made, secret = KeyStore(book).create(
            principal,
            bundles=bundle or (),
            subjects=subject or (),
            role=role,
            lasts=None if days is None else 86400.0 * days,
        )
    if as_json:
        typer.echo(json.dumps({"key": secret, **asdict(made)}, indent=2))
        return
    typer.echo(f"key {made.id} for {made.principal}; this is shown once:", err=True)
    typer.echo(secret)


@keys_app.command(name="list")
def list_keys(
    ledger: LedgerUrl,
    as_json: Json = False,
) -> None:
    """Show all keys: their owners, their permissions, and whether they are valid."""
    from reticent.service.keys import KeyStore

    now = datetime.now(UTC).timestamp()
    with opened(ledger) as book:
        found = KeyStore(book).list()
    if as_json:
        shown = [{**asdict(key), "state": key.state(now)} for key in found]
        typer.echo(json.dumps(shown, indent=2))
        return
    from rich.console import Console
    from rich.table import Column, Table

    # Within 80 columns without cutting: long names go on in the next line.
    whole = [Column(name, no_wrap=True) for name in ("key", "role", "expires", "state")]
    folded = [Column(name, overflow="fold") for name in ("principal", "bundles", "subjects")]
    table = Table(whole[0], folded[0], whole[1], *folded[1:], *whole[2:], box=None, pad_edge=False)
    for key in found:
        table.add_row(
            key.id,
            key.principal,
            key.role,
            ", ".join(key.bundles),
            ", ".join(key.subjects),
            "never" if key.expires is None else _day(key.expires)[:10],
            key.state(now),
        )
    Console().print(table)


@keys_app.command()
def revoke(
    ledger: LedgerUrl,
    key: Annotated[str, typer.Argument(help="Identifier of the key, from `reticent keys list`.")],
) -> None:
    """Take a key back. Nothing is charged by it once this command has ended."""
    from reticent.service.keys import KeyStore

    with opened(ledger) as book:
        gone = KeyStore(book).revoke(key)
    typer.echo(f"key {gone.id} of {gone.principal} is revoked")


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


@service_app.command()
def prune(
    ledger: LedgerUrl,
    older_than: Annotated[
        str,
        typer.Option(metavar="AGE", help="Least age to remove, such as 12h, 30d, 8w. At least 1h."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and remove nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Remove stored answers while services go on.

    Charges, entries and keys of requests stay. A repeated request is refused (410) if its answer is
    gone, and it is never drawn again.
    """
    from reticent.service.retention import age_of, prune

    seconds = age_of(older_than)
    with opened(ledger) as book:
        removed = prune(book, older_than=seconds, dry_run=dry_run)
    if as_json:
        typer.echo(json.dumps({**asdict(removed), "dry_run": dry_run}))
        return
    done = "would be removed" if dry_run else "removed"
    typer.echo(f"{removed.answers} answers of {removed.size} bytes {done}")


def train_model(
    bundle: BundleFolder,
    values: Annotated[
        list[Path],
        typer.Option(
            metavar="NPZ", help="Released values from `reticent release`. May be repeated."
        ),
    ],
    labels: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="Public labels of these rows, an array or a table with one column. One file for "
            "each file of values, in the same order.",
        ),
    ],
    output: Annotated[Path, typer.Option(help="Folder of the model.")],
    kind: Annotated[
        Literal["boosted", "linear", "network", "channel"],
        typer.Option(
            help="Boosted trees, logistic regression, a network (needs torch), or the posterior "
            "of a bundle of score codes."
        ),
    ] = "boosted",
    seed: TrainingSeed = 0,
    embedder: Embedder = None,
    overwrite: Overwrite = False,
) -> None:
    """Learn a model from released values, and store it for `reticent serve --models`.

    Its predictions cost nothing, because the release of the values has paid for them. Rows
    themselves are never read.
    """
    import numpy as np

    from reticent.cli.bundles import answering_system
    from reticent.cli.files import read_labels
    from reticent.client.pins import protects_input
    from reticent.systems.value_models import train_value_model

    if len(values) != len(labels):
        raise InvalidInput(
            f"labels: expected a file for each of {len(values)} files of values, got {len(labels)}"
        )
    system: Any = answering_system(bundle, None, embedder)
    if not protects_input(system.guarantee.adjacency):
        raise InvalidInput(
            f"bundle={str(bundle)!r}: protects records, and its answers are predictions already"
        )
    identity = system.bundle_identity_
    parts = [_released(path, identity) for path in values]
    targets = [read_labels(path, name="labels") for path in labels]
    for path, part, target in zip(values, parts, targets, strict=True):
        if target.shape != part.shape[:1]:
            raise InvalidInput(
                f"labels: expected {len(part)} for values={str(path)!r}, got shape={target.shape}"
            )
    widths = {part.shape[1] for part in parts}
    if len(widths) != 1:
        raise InvalidInput(f"values: expected files of one width, got {sorted(widths)}")
    model = train_value_model(
        kind,
        np.concatenate(parts),
        np.concatenate(targets),
        seed=seed,
        bundle=identity,
        guarantee=system.guarantee,
        channel=system.channel_ if kind == "channel" else None,
    )
    typer.echo(f"model {model.identity}: {model.save(output, overwrite=overwrite)}")


def _released(path: Path, identity: str) -> npt.NDArray[np.float64]:
    """Return the values that ``reticent release`` wrote by the bundle of that identity."""
    import numpy as np

    from reticent.cli.files import read_array, read_signed_receipt
    from reticent.client.wire import receipt_of
    from reticent.core.strict_json import strict_loads

    receipt = receipt_of(strict_loads(read_signed_receipt(path, name="values")[0]))
    if receipt.bundle != identity:
        raise InvalidInput(
            f"values={str(path)!r}: were released by the bundle {receipt.bundle[:16]!r}, expected "
            f"{identity[:16]!r}"
        )
    values = read_array(path, name="values", array="values")
    if values.ndim != 2 or values.dtype != np.float64:
        raise InvalidInput(
            f"values={str(path)!r}: expected vectors, shape (n, m), got shape={values.shape}; "
            "released labels need no model"
        )
    return values
