"""A service with a history, and a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from reticent.accounting import PrivacyEvent
from reticent.client import Client
from reticent.core import Guarantee, Scope
from reticent.ledger import Ledger
from reticent.tables.frames import NamedRows
from tests.browser import Page, chromium
from tests.client.conftest import records_bundle, rows_bundle, service
from tests.client.services import Running

__all__ = ["records_bundle", "rows_bundle", "service"]


@dataclass(frozen=True)
class Watched:
    """A service that was asked.

    Attributes:
        running: the service.
        receipt: of one of the requests.
    """

    running: Running
    receipt: str

    @property
    def url(self) -> str:
        """Of the pages."""
        return f"{self.running.url}/dashboard"


@pytest.fixture(scope="session")
def watched(service: Running) -> Watched:
    ledger = Ledger.open(service.ledger, anchor=service.folder / "anchors")
    (budget,) = ledger.report().budgets
    adjacency = Guarantee.from_dict(
        {"epsilon": 1.0, "delta": 0.0, **json.loads(budget.statement)}
    ).adjacency
    ledger.grant(Scope(principal="acme", subject="ward 7"), Guarantee(12.0, 0.0, adjacency))
    canary = '<script>alert("7")</script>'
    ledger.grant(Scope(principal=canary, subject="ward 7"), Guarantee(1.0, 0.0, adjacency))
    cost = PrivacyEvent("canary", Guarantee(0.5, 0.0, adjacency))
    ledger.reserve(Scope(principal=canary, subject="ward 7"), cost, answers=1)  # it has a curve
    ledger.close()
    names = ("length", "width", "petal length", "petal width")
    with Client(service.url, service.client) as client:
        for number in (4, 9, 9):
            rows = NamedRows(load_iris().data[:number], names)
            found = client.answers(rows, bundle="records")
    return Watched(service, found.receipt.identifier)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with chromium(tmp_path / "profile") as found:
        yield found
