"""`reticent keys`: who may ask the service, for which bundles, about whom."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated

import typer

from reticent.cli.ledger import LedgerUrl, opened

keys_app = typer.Typer(
    help="Keys of the service: who may ask, for which bundles, about whom, until when.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class RoleName(StrEnum):
    """What a key is for."""

    CLIENT = "client"
    OWNER = "owner"


@keys_app.command()
def create(
    ledger: LedgerUrl,
    client: Annotated[str, typer.Option(help="Who will ask; the ledger's principal.")],
    bundle: Annotated[
        list[str] | None,
        typer.Option(
            help="Identity or name of a bundle that it may ask; * for all; may be repeated."
        ),
    ] = None,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            help="Whom it may charge; a name that ends in * stands for all that begin so; may be "
            "repeated."
        ),
    ] = None,
    role: Annotated[
        RoleName, typer.Option(help="owner: looks at budgets, keys and metrics, and asks for none.")
    ] = RoleName.CLIENT,
    days: Annotated[
        float | None, typer.Option(help="Days until it expires; without it, it does not.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Plain JSON.")] = False,
) -> None:
    """Make a key, and print it once: only a digest of it is kept."""
    from reticent.service.keys import KeyStore

    with opened(ledger) as book:
        made, secret = KeyStore(book.store).create(
            client,
            bundles=bundle or (),
            subjects=subject or (),
            role=role.value,
            lasts=None if days is None else timedelta(days=days).total_seconds(),
        )
    if as_json:
        typer.echo(json.dumps({"key": secret, **asdict(made)}, indent=2))
        return
    typer.echo(f"key {made.id} for {made.principal}; this is shown once:", err=True)
    typer.echo(secret)


@keys_app.command(name="list")
def list_keys(
    ledger: LedgerUrl,
    as_json: Annotated[bool, typer.Option("--json", help="Plain JSON.")] = False,
) -> None:
    """Show all keys: whose they are, what they may do, and whether they are valid."""
    from reticent.service.keys import KeyStore

    now = datetime.now(UTC).timestamp()
    with opened(ledger) as book:
        found = KeyStore(book.store).list()
    if as_json:
        shown = [{**asdict(key), "state": key.state(now)} for key in found]
        typer.echo(json.dumps(shown, indent=2))
        return
    from rich.console import Console
    from rich.table import Column, Table

    whole = Column("key", no_wrap=True)  # commands take no shortened one
    table = Table(whole, "client", "role", "bundles", "subjects", "expires", "state")
    for key in found:
        table.add_row(
            key.id,
            key.principal,
            key.role,
            ", ".join(key.bundles),
            ", ".join(key.subjects),
            "never" if key.expires is None else _day(key.expires),
            key.state(now),
        )
    Console().print(table)


@keys_app.command()
def revoke(
    ledger: LedgerUrl,
    key: Annotated[str, typer.Argument(help="Identifier of the key, as `reticent keys list`.")],
) -> None:
    """Take a key back: nothing is charged by it once this command has ended."""
    from reticent.service.keys import KeyStore

    with opened(ledger) as book:
        gone = KeyStore(book.store).revoke(key)
    typer.echo(f"key {gone.id} of {gone.principal} is revoked")


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
