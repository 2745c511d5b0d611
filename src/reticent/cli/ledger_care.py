"""Commands of whoever runs a ledger: policy, backup, restore, accept-rollback."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.ledger import LedgerUrl, opened
from reticent.cli.ledger import ledger_app as ledger_app
from reticent.core.errors import InvalidInput

if TYPE_CHECKING:
    from reticent.ledger import Ledger

ChargeLost = Annotated[
    bool | None,
    typer.Option(
        "--charge-lost/--forget-lost",
        help="Whether every budget is charged with all that the lost entries spent, or gets it "
        "back, which is right only where "
        "nothing of it was released.",
    ),
]


@ledger_app.command()
def policy(
    ledger: LedgerUrl,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="principal, subject or bundle; may be repeated. Replaces the policy.",
        ),
    ] = None,
    require_nothing: Annotated[
        bool, typer.Option("--require-nothing", help="Requests may leave out what they like.")
    ] = False,
) -> None:
    """Show what every request must name, or set it. A budget that names it too must cover the
    request.
    """
    if require and require_nothing:
        raise InvalidInput("require, require_nothing: expected one of them")
    with opened(ledger) as book:
        found = book.set_policy(require or ()) if require or require_nothing else book.policy
    typer.echo(found.describe())


@ledger_app.command()
def backup(
    ledger: LedgerUrl,
    output: Annotated[Path, typer.Option(help="File to write.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it exists.")
    ] = False,
) -> None:
    """Copy a ledger's file into another, while others write to it, and verify the copy."""
    from reticent.ledger.backups import backup as copy

    with opened(ledger) as book:
        anchor = copy(book.store, output, overwrite=overwrite)
    typer.echo(f"backup written to {output}; anchor {anchor}")


@ledger_app.command()
def restore(
    ledger: LedgerUrl,
    source: Annotated[Path, typer.Option("--from", help="The backup.")],
    charge_lost: ChargeLost = None,
) -> None:
    """Put a backup in the ledger's place. One that is older than the ledger was ever seen needs
    a choice.
    """
    from reticent.ledger.backups import restore as put_back
    from reticent.ledger.store import Store

    store = Store(ledger)
    try:
        done = put_back(store, source, charge_lost=charge_lost)
    finally:
        store.close()
    aside = f"; what stood there is at {done.aside}" if done.aside is not None else ""
    lost = f"; {done.lost} entries are lost, {_charged(done.charged)}" if done.lost else ""
    typer.echo(f"restored to anchor {done.anchor}{lost}{aside}")


@ledger_app.command(name="accept-rollback")
def accept_rollback(ledger: LedgerUrl, charge_lost: ChargeLost = None) -> None:
    """Go on with a ledger that is older than it was ever seen, as its operator. One entry says
    so for good.
    """
    if charge_lost is None:
        raise InvalidInput(
            "charge_lost: expected --charge-lost or --forget-lost; what is lost is not decided "
            "by default"
        )
    book = _unchecked(ledger)
    try:
        charged = book.accept_rollback(charge=charge_lost)
        typer.echo(f"accepted; {_charged(charged)}; anchor {book.anchor().text}")
    finally:
        book.close()


def _charged(units: tuple[int, int]) -> str:
    from reticent.ledger.charges import delta_value, epsilon_value

    if units == (0, 0):
        return "nothing is charged for them"
    return (
        f"every budget is charged epsilon={epsilon_value(units[0]):g}, "
        f"delta={delta_value(units[1]):g} for them at most"
    )


def _unchecked(url: str) -> Ledger:
    """A ledger that may be older than its anchor."""
    from reticent.ledger import Ledger
    from reticent.ledger.store import Store

    store = Store(url)
    store.check()
    return Ledger(store)
