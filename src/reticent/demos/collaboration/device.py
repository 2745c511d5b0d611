"""The device's process: downloads, checks, releases, asks. It is the only one that sees its rows.

Run as ``python -m reticent.demos.collaboration.device URL FOLDER ASKED``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

from reticent.client import Device, Pin
from reticent.core.files import output_file
from reticent.datasets import load_adult_sample
from reticent.demos.collaboration.settings import (
    BUNDLE,
    DEVICE,
    DEVICE_RESULT,
    EPSILON,
    EXPORT,
    KEY_VARIABLE,
    MODEL,
    OWNER_KEY,
    SENT,
)
from reticent.tables.frames import NamedRows


def main(url: str, folder: Path, asked: int) -> None:
    """Asks about the first ``asked`` held-out records, each a person with a budget of one answer.

    Args:
        url: of the service.
        folder: of the demonstration; of it the device reads the owner's public key alone.
        asked: how many records.
    """
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
    ) as device:
        for person in persons:
            device.grant(person, epsilon=EPSILON, delta=0.0)
        release = device.release(rows, subject=persons)
        predicted = device.send(release, model=MODEL)
        device.ledger.export(home / EXPORT, format="jsonl", overwrite=True)
        _write(
            home / SENT,
            {"receipts": [release.receipt.to_dict()], "values": release.values.tolist()},
        )
        right = predicted == np.array(table.class_names)[table.test_labels[:asked]]
        _write(
            home / DEVICE_RESULT,
            {
                "bundle": device.bundle,
                "fingerprint": device.fingerprint,
                "guarantee": device.guarantee.describe(),
                "asked": asked,
                "accuracy": float(right.mean()),
            },
        )


def _write(path: Path, values: object) -> None:
    content = json.dumps(values, indent=1).encode()
    with output_file(path, size=len(content), overwrite=True) as put:
        put(content)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
