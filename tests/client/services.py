"""A service as a process of its own, with a fresh ledger, keys and bundles."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.core import Guarantee, Scope
from reticent.ledger import Ledger

_RUN = """
import sys
import uvicorn
from reticent.service import Settings, create_app
settings = Settings.gathered({}, file=sys.argv[1])
uvicorn.run(create_app(settings), host="127.0.0.1", port=int(sys.argv[2]), log_config=None)
"""
_START = 60.0


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
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, pem = Ed25519PrivateKey.generate(), serialization.Encoding.PEM
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    public.write_bytes(
        key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(folder: Path, *, subject: str, total: Guarantee, more: str = "") -> Iterator[Running]:
    """A service on ``folder``, which holds ``bundles`` and perhaps ``models``.

    Args:
        folder: fresh but for these.
        subject: the data set of the bundle that protects records.
        total: what is granted to it.
        more: lines of the TOML file.
    """
    from reticent.service.keys import KeyStore

    _, public = key_files(folder, "receipts")
    ledger = Ledger.create(folder / "ledger.sqlite", anchor=folder / "anchors")
    ledger.grant(Scope(subject=subject), total)
    keys = KeyStore(ledger.store)
    _, client = keys.create("acme", bundles=["*"], subjects=[subject, "patient-*"])
    _, other = keys.create("globex", bundles=["records"], subjects=["nobody"])
    _, owner = keys.create("hospital", bundles=["*"], subjects=["*"], role="owner")
    ledger.close()
    models = 'models = "models"\n' if (folder / "models").is_dir() else ""
    url = f"sqlite:///{folder / 'ledger.sqlite'}?anchor={folder / 'anchors'}"
    (folder / "serve.toml").write_text(
        f'bundles = "bundles"\nsigning_key = "receipts.pem"\nledger = "{url}"\n{models}{more}'
    )
    port = free_port()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, str(folder / "serve.toml"), str(port)],
            stdout=log,
            stderr=log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", process, folder / "log")
            yield Running(f"http://127.0.0.1:{port}", folder, public, client, other, owner)
        finally:
            process.terminate()
            process.wait(timeout=30)


def wait_until_ready(url: str, process: subprocess.Popen[Any], log: Path) -> None:
    """Returns once the service answers; fails with its log where it ends first."""
    latest = time.monotonic() + _START
    while time.monotonic() < latest:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5) as reply:
                assert reply.status == 200
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the service did not answer in {_START:g} s: {log.read_text()[-3000:]}")
