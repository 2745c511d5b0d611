"""`reticent serve`: bundles over HTTP, every answer charged before it is drawn."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from reticent.core.errors import InvalidInput


def serve(
    bundles: Annotated[
        Path | None, typer.Option(help="Folder with one fitted bundle in each folder of it.")
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            envvar="RETICENT_LEDGER",
            help="A file, or sqlite:///FILE, or postgresql://USER@HOST/NAME.",
        ),
    ] = None,
    signing_key: Annotated[
        Path | None,
        typer.Option(
            metavar="PEM", help="Private Ed25519 key that signs receipts; the same on every host."
        ),
    ] = None,
    trusted_key: Annotated[
        Path | None,
        typer.Option(metavar="PEM", help="Public key that must have signed every bundle."),
    ] = None,
    models: Annotated[
        Path | None, typer.Option(help="Folder with models that were trained on released values.")
    ] = None,
    trusted_with: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BUNDLE",
            help="Name of a bundle whose raw rows this server may see; may be repeated.",
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen at: 8000.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes: 1.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="TOML", help="File with these and further settings (docs/service.md)."
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Make a bundle, a ledger and a key in a folder that goes away again."
        ),
    ] = False,
) -> None:
    """Answer over HTTP from fitted bundles, and charge a ledger before anything is drawn.

    Flags come before RETICENT_SERVE_NAME in the environment, and these before the TOML file.
    SIGTERM and Ctrl-C finish what is under way.
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
