"""A service as a process of its own, with a fresh ledger, keys and bundles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reticent.core import Guarantee, Scope
from reticent.core.signatures import write_key_pair
from reticent.ledger import Ledger


@dataclass(frozen=True)
class Running:
    """A service that answers.

    Attributes:
        url: where.
        folder: with its ledger, keys and bundles.
        public_key: of its receipts.
        bundles_key: public key of whoever signed its bundles.
        client, other, owner: keys; ``other`` is a client who may charge nobody else's subjects.
    """

    url: str
    folder: Path
    public_key: Path
    client: str
    other: str
    owner: str
    bundles_key: Path | None = None

    @property
    def ledger(self) -> Path:
        """File of its ledger."""
        return self.folder / "ledger.sqlite"


def key_files(folder: Path, name: str) -> tuple[Path, Path]:
    """Files with a fresh private and public Ed25519 key."""
    write_key_pair(folder / f"{name}.pem")
    return folder / f"{name}.pem", folder / f"{name}.pub.pem"


@contextmanager
def running(folder: Path, *, subject: str, total: Guarantee) -> Iterator[Running]:
    """A service on ``folder``, which holds ``bundles`` and perhaps ``models``.

    Args:
        folder: fresh but for these.
        subject: the data set of the bundle that protects records.
        total: what is granted to it.
    """
    from reticent.service.keys import KeyStore
    from reticent.service.settings import Settings
    from tests.service import servers

    private, public = key_files(folder, "receipts")
    ledger = Ledger.create(folder / "ledger.sqlite", anchor=folder / "anchors")
    ledger.grant(Scope(subject=subject), total)
    keys = KeyStore(ledger)
    _, client = keys.create("acme", bundles=["*"], subjects=[subject, "patient-*"])
    _, other = keys.create("globex", bundles=["records"], subjects=["nobody"])
    _, owner = keys.create("hospital", bundles=["*"], subjects=["*"], role="owner")
    ledger.close()
    models = folder / "models"
    settings = Settings(
        bundles=folder / "bundles",
        signing_key=private,
        ledger=f"sqlite:///{folder / 'ledger.sqlite'}?anchor={folder / 'anchors'}",
        models=models if models.is_dir() else None,
        port=0,
    )
    with servers.running(settings, folder / "log") as server:
        yield Running(server.url, folder, public, client, other, owner)
