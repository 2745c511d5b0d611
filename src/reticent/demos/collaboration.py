"""The collaboration demonstration: a device that releases, a server that learns and predicts from
released values alone, and an auditor who believes neither.

The three are processes on this machine that share a folder of public files. Device and auditor are
run as ``python -m reticent.demos.collaboration device URL FOLDER ASKED`` and ``... auditor URL
FOLDER``.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from reticent.core.errors import ReticentError, ServiceUnreachable
from reticent.core.extras import require
from reticent.core.files import output_file
from reticent.core.guarantees import Guarantee
from reticent.core.signatures import verify, write_key_pair
from reticent.core.strict_json import strict_dumps
from reticent.datasets import load_adult_sample
from reticent.ledger import check_export
from reticent.ledger.chain import ANCHOR_VARIABLE
from reticent.release.bundle import sign_bundle
from reticent.systems import PowerEncoder, train_server
from reticent.systems.value_models import train_value_model
from reticent.tables.frames import NamedRows
from reticent.tables.known_schemas import adult_schema

EPSILON = 4.0
"""Of one released row: any two records of the schema are neighbours."""

KEY_VARIABLE = "RETICENT_DEMO_KEY"
"""Environment variable that hands a process its API key; a command line could be read by others."""

BUNDLE, MODEL = "embedding", "income"
"""Names of the bundle that devices download, and of the model that answers them."""

OWNER_KEY, RECEIPT_KEY = "owner", "service"
"""Names of key files: who signed bundle and model, and who signs anchors."""

DEVICE, EXPORT, SENT = "device", "export.jsonl", "sent.json"
"""The device's folder, and the files in it that the auditor reads."""

_LEDGER = "server.sqlite"
_PATIENCE = 60.0
_MICRO = 1_000_000


@dataclass(frozen=True)
class Settings:
    """Sizes of the demonstration.

    Attributes:
        public: public rows that the encoder is fitted on.
        participants: rows that are released once, for the server to learn from.
        asked: held-out rows that the device asks about.
        seed: of training; the noise is never seeded.
    """

    public: int = 2400
    participants: int = 4000
    asked: int = 800
    seed: int = 0


def run_demo(folder: Path, settings: Settings) -> dict[str, Any]:
    """Run the whole demonstration in an empty folder, and return what each process found.

    Args:
        folder: empty; stays, with everything that the processes wrote.
        settings: sizes.

    Raises:
        MissingExtra: the extra ``service``, ``client`` or ``signing`` is not installed.
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
    _python(folder, "reticent", "ledger", "init", "--ledger", _LEDGER)
    keys = {
        name: json.loads(
            _python(
                folder,
                *("reticent", "keys", "create", "--ledger", _LEDGER, "--principal", name, "--json"),
                *("--bundle", "*", "--subject", "*"),
            )
        )["key"]
        for name in ("clinic", "auditor")
    }
    with _serving(folder) as url:
        places = url, str(folder)
        _python(folder, __name__, "device", *places, str(settings.asked), key=keys["clinic"])
        _python(folder, __name__, "auditor", *places, key=keys["auditor"])
    return {
        "settings": {"epsilon": EPSILON, **asdict(settings)},
        "device": json.loads((folder / DEVICE / "device.json").read_text(encoding="utf-8")),
        "audit": json.loads((folder / "audit.json").read_text(encoding="utf-8")),
        "rivals": rivals,
    }


def summary(results: dict[str, Any]) -> str:
    """Return the results in three lines."""
    device, found, rivals = results["device"], results["audit"], results["rivals"]
    return (
        f"device:  {device['asked']} private rows, each released once with "
        f"epsilon={results['settings']['epsilon']:g} (any two records); the server was "
        "sent released values only\n"
        f"server:  {device['accuracy']:.1%} of its predictions are right; "
        f"{rivals['majority']:.1%} by the most frequent label, {rivals['rows']:.1%} by a "
        "model that sees the rows themselves\n"
        f"auditor: {found['answers']} answers were charged, epsilon {found['most']:g} at "
        f"most to one person, {found['sent']} values were sent: "
        f"{'; '.join(found['problems']) or 'nothing is wrong'}"
    )


def _prepare(folder: Path, settings: Settings) -> dict[str, float]:
    """Write keys, the signed bundle and the signed model; return the accuracy of two rivals on the
    rows that the device will ask about.
    """
    owner = folder / f"{OWNER_KEY}.pem"
    for key in (owner, folder / f"{RECEIPT_KEY}.pem"):
        write_key_pair(key)
    table, schema = load_adult_sample(), adult_schema()
    names = np.array(table.class_names)
    public = slice(0, settings.public)
    taking_part = slice(settings.public, settings.public + settings.participants)
    rows, labels = table.train_rows[taking_part], table.train_labels[taking_part]
    encoder = PowerEncoder(
        epsilon=EPSILON,
        delta=0.0,
        radius=None,
        schema=schema,
        mechanism="score-code",
        scoring="accuracy",
        random_state=settings.seed,
    )
    encoder.fit(table.train_rows[public], table.train_labels[public])
    sign_bundle(encoder.save(folder / "bundles" / BUNDLE), key=owner)
    model = train_value_model(
        "channel",
        encoder.release(rows).values,
        names[labels],
        seed=settings.seed,
        bundle=encoder.bundle_identity_,
        guarantee=encoder.guarantee,
        channel=encoder.channel_,
    )
    sign_bundle(model.save(folder / "models" / MODEL), key=owner)
    plain = train_server("boosted", schema.encode(rows), labels, seed=settings.seed)
    held, asked = table.test_labels[: settings.asked], table.test_rows[: settings.asked]
    return {
        "rows": float((plain.predict(schema.encode(asked)) == held).mean()),
        "majority": float((held == np.bincount(labels).argmax()).mean()),
    }


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """The address of a server, which is stopped afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "reticent", "serve", "--port", str(port)),
        *("--bundles", "bundles", "--models", "models", "--ledger", _LEDGER),
        *("--signing-key", f"{RECEIPT_KEY}.pem", "--trusted-key", f"{OWNER_KEY}.pub.pem"),
    ]
    url, path = f"http://127.0.0.1:{port}", folder / "server.log"
    with path.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env=_environment(folder)
        )
        try:
            latest = time.monotonic() + _PATIENCE
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > latest:
                    raise ServiceUnreachable(f"the server did not start; see {path}")
                time.sleep(0.05)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=_PATIENCE)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5):
            return True
    except OSError:
        return False


def _python(folder: Path, module: str, *words: str, key: str = "") -> str:
    """What a module says that is run with these words."""
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**_environment(folder), KEY_VARIABLE: key},
    )
    return done.stdout


def _environment(folder: Path) -> dict[str, str]:
    """Ledgers of the demonstration live no longer than its folder, and their anchors with them."""
    return {**os.environ, ANCHOR_VARIABLE: str(folder / "anchors")}


def device(url: str, folder: Path, asked: int) -> None:
    """Download, check, release and ask about the first ``asked`` held-out records, each a person
    with a budget of one answer. Only this process sees its rows.

    Args:
        url: of the service.
        folder: of the demonstration; of it the device reads the owner's public key alone.
        asked: how many records.
    """
    from reticent.client import Device, Pin

    table, home = load_adult_sample(), folder / DEVICE
    rows = NamedRows(table.test_rows[:asked], table.columns)
    persons = [f"person-{number}" for number in range(asked)]
    with Device(
        url,
        os.environ[KEY_VARIABLE],
        bundle=BUNDLE,
        trusted_key=folder / f"{OWNER_KEY}.pub.pem",
        pin=Pin(epsilon=EPSILON, delta=0.0, radius=float("inf")),
        home=home,
    ) as here:
        for person in persons:
            here.grant(person, epsilon=EPSILON, delta=0.0)
        release = here.release(rows, subject=persons)
        predicted = here.send(release, model=MODEL)
        here.ledger.export(home / EXPORT, format="jsonl", overwrite=True)
        sent = {"receipts": [release.receipt.to_dict()], "values": release.values.tolist()}
        _write(home / SENT, sent)
        right = predicted == np.array(table.class_names)[table.test_labels[:asked]]
        found = {
            "bundle": here.bundle,
            "fingerprint": here.fingerprint,
            "guarantee": here.guarantee.describe(),
            "asked": asked,
            "accuracy": float(right.mean()),
        }
        _write(home / "device.json", found)


def auditor(url: str, folder: Path) -> None:
    """Recompute the guarantee and what was spent, and write what was found.

    The auditor sees what is public (the bundle), what the device shows (an export of its ledger,
    and what it sent), and a signed anchor of the server's ledger; no row, and no ledger.

    Args:
        url: of the service.
        folder: of the demonstration.
    """
    from reticent.client import Client, Device

    key = os.environ[KEY_VARIABLE]
    trusted = folder / f"{OWNER_KEY}.pub.pem"
    with (
        tempfile.TemporaryDirectory() as home,
        Device(url, key, bundle=BUNDLE, trusted_key=trusted, home=home) as public,
    ):
        found = audit(folder / DEVICE, public.guarantee, public.bundle)
        found["guarantee"] = public.guarantee.describe()
    with Client(url, key) as client:
        anchored = client.anchor()
    verify(
        strict_dumps(anchored["anchor"]),
        strict_dumps(anchored["signature"]),
        purpose="anchor",
        trusted_key=folder / f"{RECEIPT_KEY}.pub.pem",
    )
    if anchored["anchor"]["epsilon"] != 0:
        found["problems"].append("the server charged something; predictions are free")
    _write(folder / "anchor.json", anchored)
    _write(folder / "audit.json", found)


def audit(shown: Path, guarantee: Guarantee, bundle: str) -> dict[str, Any]:
    """Return what an export of a device's ledger shows, and what is wrong with it.

    Args:
        shown: folder with the export and what was sent.
        guarantee: of one answer, as the auditor computed it.
        bundle: identity of the bundle that answered.

    Returns:
        ``entries``, ``answers`` that were charged, ``spent`` epsilon in all, ``most`` epsilon of
        any one person, values that were ``sent``, and ``problems``, empty where all is well.
    """
    from reticent.client.wire import receipt_of

    problems: list[str] = []
    lines = (shown / EXPORT).read_text(encoding="utf-8").splitlines()
    try:
        entries = check_export(lines)
    except ReticentError as error:
        return {"problems": [str(error)]}
    granted: defaultdict[str, int] = defaultdict(int)
    spent: defaultdict[str, int] = defaultdict(int)
    answers, last = 0, {}
    cost = Fraction(repr(guarantee.epsilon)) * _MICRO
    for entry in map(json.loads, lines):
        if entry["action"] == "grant":
            granted[entry["subject"]] += entry["epsilon"]
        elif entry["action"] == "reserve":
            spent[entry["subject"]] += entry["epsilon"]
            answers += entry["answers"]
            if entry["epsilon"] < cost * entry["answers"]:
                problems.append(f"entry {entry['seq']} charged less than its answers cost")
            if entry["bundle"] != bundle:
                problems.append(f"entry {entry['seq']} is of another bundle")
        last[entry["seq"]] = entry["digest"]
    problems += [
        f"{name} spent more than was granted"
        for name, amount in spent.items()
        if amount > granted[name]
    ]
    left = json.loads((shown / SENT).read_text(encoding="utf-8"))
    receipts, sent = [receipt_of(one) for one in left["receipts"]], len(left["values"])
    for receipt in receipts:
        if receipt.guarantee != guarantee or receipt.bundle != bundle or receipt.seeded:
            problems.append(f"receipt {receipt.identifier} is for something else")
        if last.get(receipt.position) != receipt.digest:
            problems.append(f"receipt {receipt.identifier} is not in the export")
    if sent > sum(receipt.answers for receipt in receipts) or sent > answers:
        problems.append(f"{sent} values were sent, and {answers} answers were charged")
    return {
        "entries": entries,
        "answers": answers,
        "spent": sum(spent.values()) / _MICRO,
        "most": max(spent.values(), default=0) / _MICRO,
        "sent": sent,
        "problems": problems,
    }


def _write(path: Path, values: object) -> None:
    content = json.dumps(values, indent=1).encode()
    with output_file(path, size=len(content), overwrite=True) as put:
        put(content)


def main() -> None:
    """Run the device or the auditor, as the command line says."""
    role, url, folder, *asked = sys.argv[1:]
    if role == "device":
        device(url, Path(folder), int(asked[0]))
    else:
        auditor(url, Path(folder))


if __name__ == "__main__":
    main()
