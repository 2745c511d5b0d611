"""Runs the three processes: prepares what is public, starts the server, lets the device ask and the
auditor look.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from reticent.core.errors import ServiceUnreachable
from reticent.core.extras import require
from reticent.datasets import load_adult_sample
from reticent.demos.collaboration.settings import (
    AUDIT_RESULT,
    BUNDLE,
    BUNDLES,
    DEVICE,
    DEVICE_RESULT,
    EPSILON,
    KEY_VARIABLE,
    MODEL,
    MODELS,
    OWNER_KEY,
    RECEIPT_KEY,
    CollaborationSettings,
)
from reticent.ledger.chain import ANCHOR_VARIABLE
from reticent.release.bundle import sign_bundle
from reticent.systems import PowerEncoder, train_server
from reticent.systems.value_models import train_value_model
from reticent.tables.known_schemas import adult_schema

_PATIENCE = 60.0
_LEDGER = "server.sqlite"


def run_demo(folder: Path, settings: CollaborationSettings) -> dict[str, Any]:
    """The whole demonstration in an empty folder; what each process found.

    Args:
        folder: empty; stays, with everything that the processes wrote.
        settings: sizes.

    Raises:
        MissingExtra: the extra ``service`` is not installed.
        ServiceUnreachable: the server did not start; its log is in the folder.
        subprocess.CalledProcessError: the device or the auditor failed, and said why on standard
            error.
    """
    require("fastapi", extra="service")
    require("uvicorn", extra="service")
    require("httpx", extra="client")
    require("cryptography", extra="signing")
    (folder / "anchors").mkdir()
    rivals = _prepare(folder, settings)
    _reticent(folder, "ledger", "init", "--ledger", _LEDGER)
    keys = {
        name: json.loads(
            _reticent(
                folder,
                *("keys", "create", "--ledger", _LEDGER, "--client", name, "--json"),
                *("--bundle", "*", "--subject", "*"),
            )
        )["key"]
        for name in ("clinic", "auditor")
    }
    with _serving(folder) as url:
        _process(folder, "device", keys["clinic"], url, str(folder), str(settings.asked))
        _process(folder, "auditor", keys["auditor"], url, str(folder))
    return {
        "settings": {"epsilon": EPSILON, **vars(settings)},
        "device": json.loads((folder / DEVICE / DEVICE_RESULT).read_text(encoding="utf-8")),
        "audit": json.loads((folder / AUDIT_RESULT).read_text(encoding="utf-8")),
        "rivals": rivals,
    }


def summary(results: dict[str, Any]) -> str:
    """The results in a few lines."""
    device, audit, rivals = results["device"], results["audit"], results["rivals"]
    problems = audit["problems"]
    return "\n".join(
        (
            (
                f"device:  {device['asked']} private rows, each released once with "
                f"epsilon={results['settings']['epsilon']:g} (any two records); the server was "
                "sent released values only"
            ),
            (
                f"server:  {device['accuracy']:.1%} of its predictions are right; "
                f"{rivals['majority']:.1%} by the most frequent label, {rivals['rows']:.1%} by a "
                "model that sees the rows themselves"
            ),
            (
                f"auditor: {audit['answers']} answers were charged, epsilon {audit['most']:g} at "
                f"most to one person, {audit['sent']} values were sent: "
                f"{'nothing is wrong' if not problems else '; '.join(problems)}"
            ),
        )
    )


def _prepare(folder: Path, settings: CollaborationSettings) -> dict[str, float]:
    """Writes keys, the signed bundle and the signed model; the accuracy of two rivals on the rows
    that the device will ask about.
    """
    owner = _write_keys(folder, OWNER_KEY)
    _write_keys(folder, RECEIPT_KEY)
    table = load_adult_sample()
    names = np.array(table.class_names)
    public, taking_part = (
        slice(0, settings.public),
        slice(settings.public, settings.public + settings.participants),
    )
    encoder = PowerEncoder(
        epsilon=EPSILON,
        delta=0.0,
        radius=None,
        schema=adult_schema(),
        mechanism="score-code",
        scoring="accuracy",
        random_state=settings.seed,
    )
    encoder.fit(table.train_rows[public], table.train_labels[public])
    sign_bundle(encoder.save(folder / BUNDLES / BUNDLE), key=owner)
    released = encoder.release(table.train_rows[taking_part])
    model = train_value_model(
        "channel",
        released.values,
        names[table.train_labels[taking_part]],
        seed=settings.seed,
        bundle=encoder.bundle_identity_,
        guarantee=encoder.guarantee,
        channel=encoder.channel_,
    )
    sign_bundle(model.save(folder / MODELS / MODEL), key=owner)
    schema = adult_schema()
    held = slice(0, settings.asked)
    labels = table.test_labels[held]
    plain = train_server(
        "boosted",
        schema.encode(table.train_rows[taking_part]),
        table.train_labels[taking_part],
        seed=settings.seed,
    )
    right = plain.predict(schema.encode(table.test_rows[held])) == labels
    most = np.bincount(table.train_labels[taking_part]).argmax()
    return {"rows": float(right.mean()), "majority": float((labels == most).mean())}


def _write_keys(folder: Path, name: str) -> Path:
    """The file with a new private key; its public one stands beside it."""
    keys = require("cryptography.hazmat.primitives.asymmetric.ed25519", extra="signing")
    forms = require("cryptography.hazmat.primitives.serialization", extra="signing")
    key, pem = keys.Ed25519PrivateKey.generate(), forms.Encoding.PEM
    private = folder / f"{name}.pem"
    content = key.private_bytes(pem, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    with os.fdopen(os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    public = key.public_key().public_bytes(pem, forms.PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub.pem").write_bytes(public)
    return private


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """The address of a server, which is stopped afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "reticent", "serve", "--port", str(port)),
        *("--bundles", BUNDLES, "--models", MODELS, "--ledger", _LEDGER),
        *("--signing-key", f"{RECEIPT_KEY}.pem", "--trusted-key", f"{OWNER_KEY}.pub.pem"),
    ]
    url = f"http://127.0.0.1:{port}"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env=_environment(folder)
        )
        try:
            _wait(url, process, folder / "server.log")
            yield url
        finally:
            process.terminate()
            process.wait(timeout=_PATIENCE)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    latest = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < latest:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise ServiceUnreachable(f"the server did not start; see {log}")


def _process(folder: Path, name: str, key: str, *arguments: str) -> None:
    command = [sys.executable, "-m", f"reticent.demos.collaboration.{name}", *arguments]
    subprocess.run(command, check=True, env={**_environment(folder), KEY_VARIABLE: key})


def _reticent(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "reticent", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env=_environment(folder),
    )
    return done.stdout


def _environment(folder: Path) -> dict[str, str]:
    """Ledgers of the demonstration live no longer than its folder, and their anchors with them."""
    return {**os.environ, ANCHOR_VARIABLE: str(folder / "anchors")}
