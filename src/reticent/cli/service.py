"""`reticent service`: care for what a service keeps."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from reticent.cli.ledger import LedgerUrl, opened

service_app = typer.Typer(
    help="Care for what the service keeps beside its ledger.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@service_app.callback()
def _service() -> None:
    """Care for what the service keeps beside its ledger."""


@service_app.command()
def prune(
    ledger: LedgerUrl,
    older_than: Annotated[
        str,
        typer.Option(metavar="AGE", help="Age of what is removed: 12h, 30d, 8w; at least 1h."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and remove nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Plain JSON.")] = False,
) -> None:
    """Remove stored answers, while services go on. Charges, entries and keys of requests stay: a
    request whose answer is gone is refused (410) when it is repeated, and never drawn again.
    """
    from reticent.service.retention import age_of, prune

    seconds = age_of(older_than)
    with opened(ledger) as book:
        removed = prune(book.store, older_than=seconds, dry_run=dry_run)
    if as_json:
        typer.echo(json.dumps({**asdict(removed), "dry_run": dry_run}))
        return
    done = "would be removed" if dry_run else "removed"
    typer.echo(f"{removed.answers} answers of {removed.size} bytes {done}")
