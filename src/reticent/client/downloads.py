"""The public part of a bundle, from a service onto a device: file by file, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from reticent.client.client import Client
from reticent.client.sessions import Offer
from reticent.core.errors import CorruptBundle, InvalidInput, ReticentError
from reticent.core.files import output_folder
from reticent.release.bundle import MARKER, MOST_BYTES, Bundle

_OPTIONAL = frozenset({"signature.json"})


def download(client: Client, offer: Offer, folder: Path, *, trusted_key: str | Path | None) -> Path:
    """Return the folder with the bundle that was offered. It is checked before it gets its name.

    If a bundle of that identity is there already, it is checked and kept. Its card and signature
    may have been made anew, so those are fetched again.

    Args:
        client: client of the service.
        offer: the service's offer.
        folder: folder with the bundles of this device, each under its identity.
        trusted_key: file with the public key that must have signed it, or None.

    Raises:
        CorruptBundle: a file is missing, or they do not fit together, or are not what was offered.
        UntrustedSignature: not signed by ``trusted_key``.
        WriteFailed: no room on the device.
    """
    target = folder / offer.id
    unknown = sorted(set(offer.files) - set(MOST_BYTES))
    if unknown:
        raise InvalidInput(
            f"bundle={offer.name!r}: offers files that a bundle has not: {', '.join(unknown)}"
        )
    with output_folder(target, marker=MARKER, overwrite=True) as output:
        for name, most in MOST_BYTES.items():
            content = _kept(target, name) if name == "weights.safetensors" else None
            if content is None:
                content = client.file(offer.id, name, most=most)
            if content is not None:
                output.write(name, content)
            elif name not in _OPTIONAL:
                raise CorruptBundle(
                    f"bundle={offer.name!r}: the service has no {name}; expected all files of it"
                )
        found = _checked(output.path, trusted_key)
        if found.identity != offer.id:
            raise CorruptBundle(
                f"bundle={offer.name!r}: is {found.identity[:16]}..., and was offered as "
                f"{offer.id[:16]}...; expected the same"
            )
    return target


def _checked(folder: Path, trusted_key: str | Path | None) -> Bundle:
    return Bundle.read(folder, trusted_key=trusted_key)


def _kept(target: Path, name: str) -> bytes | None:
    """Return a file of the whole bundle of that identity that is there already, or None."""
    try:
        Bundle.read(target)
    except ReticentError:
        return None
    return (target / name).read_bytes()
