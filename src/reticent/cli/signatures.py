"""`reticent sign` and `reticent verify`: who made a bundle, and who answered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sign(
    bundle: Annotated[Path, typer.Argument(help="Folder of a fitted bundle.")],
    key: Annotated[
        Path, typer.Option(metavar="PEM", help="Private Ed25519 key, without a password.")
    ],
) -> None:
    """Sign a bundle, so that others can tell that nobody else has changed it. An earlier signature
    is replaced.

    The signature covers every file of the bundle. A checksum finds damage; only a signature
    finds a bundle that was edited.
    """
    from reticent.release.bundle import sign_bundle

    typer.echo(f"signed: {sign_bundle(bundle, key=key)}")


def verify(
    path: Annotated[
        Path, typer.Argument(help="Folder of a bundle, or .npz file that `reticent release` wrote.")
    ],
    trusted_key: Annotated[
        Path,
        typer.Option(metavar="PEM", help="Public Ed25519 key of the one who should have signed."),
    ],
) -> None:
    """Check that a bundle, or the receipt of released values, was signed by a key. The exit
    status is 18 where it was not.
    """
    if path.is_dir():
        from reticent.release.bundle import Bundle

        found = Bundle.read(path, trusted_key=trusted_key)
        typer.echo(f"signed by the trusted key: a {found.system}, bundle {found.identity}")
        return
    from reticent.cli.arrays import read_signed_receipt
    from reticent.core.signatures import verify as verify_signature

    receipt, signature = read_signed_receipt(path)
    verify_signature(receipt, signature, purpose="receipt", trusted_key=trusted_key)
    typer.echo("signed by the trusted key: the receipt. The released values are no part of it")
