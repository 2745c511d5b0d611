"""A small fleet on this machine: keys, a bundle of three labels, rounds, and devices' envelopes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reticent import CodeEncoder
from reticent.core.guarantees import Guarantee
from reticent.core.signatures import opening_key, signing_key, write_key_pair
from reticent.fleet import Aggregator, Round, Shuffler
from reticent.fleet.aggregator import scope_of
from reticent.fleet.sealing import envelope
from reticent.fleet.shuffler import SEALING, SIGNING
from reticent.ledger.ledger import Ledger
from reticent.tables.attributes import Categorical
from reticent.tables.schema import TabularSchema

LABELS = ("cat", "cow", "dog")
DELTA = 1e-3


def fitted(epsilon: float = 2.0) -> CodeEncoder:
    """Codes of a row's own label, by randomised response."""
    rows = np.array(LABELS, dtype=object)[np.arange(300) % 3][:, None]
    schema = TabularSchema((Categorical("animal", LABELS),))
    return CodeEncoder(epsilon=epsilon, schema=schema, targets=("animal",), random_state=0).fit(
        rows
    )


@dataclass
class Fleet:
    """Homes of a shuffler and an aggregator, and the bundle."""

    folder: Path
    encoder: CodeEncoder

    def __post_init__(self) -> None:
        for home in (self.shuffler_home, self.aggregator_home):
            home.mkdir()
            write_key_pair(home / SIGNING)
            write_key_pair(home / SEALING, sealing=True)

    @property
    def shuffler_home(self) -> Path:
        """The shuffler's folder."""
        return self.folder / "shuffler"

    @property
    def aggregator_home(self) -> Path:
        """The aggregator's folder."""
        return self.folder / "aggregator"

    def round(self, **changed: Any) -> Round:
        """A round of at least 20 and at most 30 reports."""
        given = {
            "campaign": "animals",
            "number": 1,
            "least": 20,
            "most": 30,
            "hostile": 2,
            "closes": int(time.time()) + 600,
            "delta": DELTA,
            "aggregator": _public(self.aggregator_home),
            "shuffler": _public(self.shuffler_home),
            "signer": signing_key(self.shuffler_home / SIGNING)
            .public_key()
            .public_bytes_raw()
            .hex(),
        }
        return Round.planned(self.encoder, **given | changed)

    def shuffler(self, round_: Round) -> Shuffler:
        """The shuffler of a round."""
        return Shuffler(round_, self.shuffler_home)

    def aggregator(self, round_: Round, *, budget: float = 100.0) -> Aggregator:
        """The aggregator of a round, with a budget for its campaign."""
        ledger = Ledger.create(self.aggregator_home / "ledger.sqlite")
        ledger.grant(scope_of(round_), Guarantee(budget, 0.5, round_.guarantee.adjacency))
        return Aggregator(round_, self.encoder, self.aggregator_home, ledger=ledger)

    def forward(self, shuffler: Shuffler, aggregator: Aggregator) -> None:
        """Every batch, as the two processes pass it on."""
        while (batch := shuffler.batch()) is not None:
            aggregator.take(*batch)
            shuffler.forwarded(batch[0]["number"])


def _public(home: Path) -> str:
    return opening_key(home / SEALING).public_key().public_bytes_raw().hex()


def envelopes(shuffler: Shuffler, codes: list[int]) -> list[bytes]:
    """One envelope for each code, each with a token of its own."""
    tokens = shuffler.tokens(len(codes))
    return [
        envelope(code, token=token, round_=shuffler.round)
        for code, token in zip(codes, tokens, strict=True)
    ]
