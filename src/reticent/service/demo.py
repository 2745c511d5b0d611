"""The content of `reticent serve --demo`: a bundle, a ledger with a budget, and two keys.

All of them are made anew.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.core.extras import require
from reticent.core.guarantees import Guarantee
from reticent.core.scopes import Scope
from reticent.core.signatures import write_key_pair
from reticent.ledger.chain import ANCHOR_VARIABLE
from reticent.ledger.ledger import Ledger
from reticent.service.keys import KeyStore

DATA_SET = "blobs"
"""Name of the records that the demonstration protects."""

_EPSILON, _ANSWERS = 1.0, 500
_RECORDS, _PUBLIC = 2000, 3
_FARTHEST = 8.0
"""Public bound of the records' length; the classifier takes vectors of length 1 at most."""


@dataclass(frozen=True)
class Prepared:
    """A demonstration that is ready to be served.

    Attributes:
        given: the settings.
        secret, owner: keys of a client and of the owner.
        rows: public rows to ask about.
    """

    given: dict[str, Any]
    secret: str
    owner: str
    rows: list[list[float]]

    def snippet(self, url: str) -> str:
        """Return lines to copy into another terminal.

        Args:
            url: address where the service answers.
        """
        body = json.dumps({"rows": self.rows})
        address = f"{url}/v1/bundles/{DATA_SET}/answers"
        return f"""
Each answer costs epsilon {_EPSILON:g} of a budget of {_EPSILON * _ANSWERS:g}. In another terminal:

  curl -s {address} \\
    -H 'Authorization: Bearer {self.secret}' \\
    -H "Idempotency-Key: $(date +%s%N)" -H 'Content-Type: application/json' \\
    -d '{body}'

or in Python:

  import httpx
  print(httpx.post("{address}", json={body},
      headers={{"Authorization": "Bearer {self.secret}", "Idempotency-Key": "first-try"}}).json())

The owner's key, for /metrics and the pages at {url}/dashboard: {self.owner}
"""


def prepare(folder: Path) -> Prepared:
    """Make a bundle that labels points from private records, a ledger with a budget for them, and
    keys.

    Args:
        folder: an empty folder. Everything is made in it, the ledger's anchor too, since the ledger
            lives no longer than the folder.

    Raises:
        MissingExtra: the extra ``service`` is not installed.
    """
    require("cryptography", extra="signing")
    from reticent.datasets import load_blobs
    from reticent.systems.certified.reserve_system import ConvexCertifiedClassifier

    blobs = load_blobs("separable", points=_RECORDS, held_out=_PUBLIC)
    classifier = ConvexCertifiedClassifier(epsilon=_EPSILON, classes=[0, 1], data_set=DATA_SET)
    classifier.fit(blobs.train_rows / _FARTHEST, blobs.train_labels)
    bundles, anchors = folder / "bundles", folder / "anchors"
    bundles.mkdir()
    anchors.mkdir()
    classifier.save(bundles / DATA_SET)
    key = folder / "signing-key.pem"
    write_key_pair(key)
    os.environ[ANCHOR_VARIABLE] = str(anchors)
    url = str(folder / "ledger.db")
    ledger = Ledger.create(url)
    adjacency = classifier.guarantee.adjacency
    ledger.grant(Scope(subject=DATA_SET), Guarantee(_EPSILON * _ANSWERS, 0.0, adjacency))
    keys = KeyStore(ledger)
    _, secret = keys.create("demo", bundles=["*"], subjects=[DATA_SET])
    _, owner = keys.create("owner", bundles=["*"], subjects=["*"], role="owner")
    ledger.close()
    rows = (blobs.test_rows / _FARTHEST).round(3).tolist()
    given = {"bundles": bundles, "ledger": url, "signing_key": key}
    return Prepared(given, secret, owner, rows)
