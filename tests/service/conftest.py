"""Bundles of every route, fitted once; ledgers with budgets and keys; servers on them."""

from __future__ import annotations

import json
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.signatures import write_key_pair
from reticent.ledger import Ledger
from reticent.service.keys import KeyStore
from reticent.service.settings import Settings
from tests.ledger.conftest import ledger_url, postgres_server, postgres_url
from tests.machine import wait_until

__all__ = ["ledger_url", "postgres_server", "postgres_url"]

RECORDS = "ward 7"
"""Name of the data set that the bundle of records protects."""


ROWS = [[0.3, 0.25], [-0.3, -0.2]]
COST = 500_000
"""Micro-epsilon of one answer of ``labels``."""


def ask(
    client: httpx.Client,
    name: str = "request-1",
    body: Any = types.MappingProxyType({"rows": ROWS}),
    *,
    bundle: str = "labels",
    **more: str,
) -> httpx.Response:
    """What a bundle answers to a body, or to bytes of JSON, with more headers."""
    headers = {"Idempotency-Key": name, "Content-Type": "application/json", **more}
    content = body if isinstance(body, bytes) else json.dumps(dict(body)).encode()
    return client.post(f"/v1/bundles/{bundle}/answers", content=content, headers=headers)


@dataclass(frozen=True)
class Place:
    """Where a service is to run, and who may ask it.

    Attributes:
        bundles: folder with ``labels`` (records, charged by row), ``free`` (a released model) and
            ``rows`` (the input is protected); and ``curated``, another of that kind.
        ledger: URL.
        signing_key, public_key: files.
        secret: key of "acme", for everything about RECORDS and "patient-*".
        other: key of "bolt", for the subject "patient-9" alone.
        owner: key of an owner.
    """

    bundles: Path
    ledger: str
    signing_key: Path
    public_key: Path
    models: Path
    secret: str
    other: str
    owner: str

    def settings(self, **others: Any) -> Settings:
        """Settings of a server here."""
        given = {
            "bundles": self.bundles,
            "ledger": self.ledger,
            "signing_key": self.signing_key,
            "models": self.models,
            "trusted_with": ("curated",),
            "port": 0,
            "durable": False,
        }
        return Settings.model_validate(given | others)

    def open(self) -> Ledger:
        """The ledger itself."""
        return Ledger.open(self.ledger, synchronous="NORMAL")

    def spent(self, subject: str) -> int:
        """Micro-epsilon that the budget of ``subject`` has spent."""
        ledger = self.open()
        try:
            found = ledger.report(Scope(subject=subject)).budgets
            return sum(budget.spent_epsilon for budget in found)
        finally:
            ledger.close()


@pytest.fixture(scope="session")
def served_bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One bundle of each kind."""
    from reticent.systems.certified.reserve_system import ConvexCertifiedClassifier
    from reticent.systems.power.encoder import PowerEncoder
    from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier

    folder = tmp_path_factory.mktemp("served") / "bundles"
    folder.mkdir()
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = np.clip(rng.normal(size=(600, 2)) * 0.1 + 0.3 * (2 * y[:, None] - 1), -0.7, 0.7)
    labels = ConvexCertifiedClassifier(epsilon=0.5, classes=["no", "yes"], data_set=RECORDS)
    labels.fit(X, np.where(y == 1, "yes", "no")).save(folder / "labels")
    free = NoisyGradientClassifier(
        epsilon=1.0, delta=1e-5, classes=(0, 1), steps=3, data_set=RECORDS
    )
    free.fit(X, y, public_X=X[:100]).save(folder / "free")
    for name, epsilon in (("rows", 4.0), ("curated", 3.0)):
        encoder = PowerEncoder(
            epsilon=epsilon,
            delta=0.0,
            radius=None,
            schema=(-1.0, 1.0),
            mechanism="code",
            random_state=0,
        )
        encoder.fit(X, y).save(folder / name)
    return folder


@pytest.fixture(scope="session")
def served_models(served_bundles: Path) -> Path:
    """A model of two released values."""
    from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier

    folder = served_bundles.parent / "models"
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    released = rng.normal(size=(400, 2)) + 2.0 * y[:, None]
    model = NoisyGradientClassifier(
        epsilon=1.0, delta=1e-5, classes=(0, 1), steps=3, data_set="released"
    )
    model.fit(released, y, public_X=released[:50]).save(folder / "from-released")
    return folder


@pytest.fixture(scope="session")
def signing_keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A private key, and its public one."""
    folder = tmp_path_factory.mktemp("keys")
    write_key_pair(folder / "key.pem")
    return folder / "key.pem", folder / "key.pub.pem"


@pytest.fixture
def make_place(
    served_bundles: Path, served_models: Path, signing_keys: tuple[Path, Path], tmp_path: Path
) -> Callable[..., Place]:
    """Makes a ledger with budgets and keys."""

    def make(url: str, *, epsilon: float = 1000.0) -> Place:
        anchors = tmp_path / "anchors"
        anchors.mkdir(exist_ok=True)
        url = f"{url}{'&' if '?' in url else '?'}anchor={anchors}"
        ledger = Ledger.create(url, synchronous="NORMAL")
        records = AddRemove(1, data_set=RECORDS)
        ledger.grant(Scope(subject=RECORDS), Guarantee(epsilon, 0.0, records))
        rows = _adjacency_of_rows(served_bundles)
        patients = [Scope(subject=f"patient-{number}") for number in range(10)]
        ledger.grant_each(patients, Guarantee(epsilon, 0.0, rows))
        keys = KeyStore(ledger)
        granted = (RECORDS, "patient-*")
        _, secret = keys.create("acme", bundles=["*"], subjects=granted)
        _, other = keys.create("bolt", bundles=["*"], subjects=["patient-9"])
        _, owner = keys.create("owner", bundles=["*"], subjects=["*"], role="owner")
        ledger.close()
        return Place(served_bundles, url, *signing_keys, served_models, secret, other, owner)

    return make


@pytest.fixture
def place(make_place: Callable[..., Place], tmp_path: Path) -> Place:
    """A service on SQLite."""
    return make_place(f"sqlite:///{tmp_path / 'ledger.db'}")


@pytest.fixture
def any_place(make_place: Callable[..., Place], ledger_url: str) -> Place:
    """A service on SQLite, and again on PostgreSQL."""
    return make_place(ledger_url)


@pytest.fixture
def serve_here() -> Iterator[Callable[..., httpx.Client]]:
    """Serves in this process, in a thread; gives a client, with a key if one is named. ``under`` is
    the path under which a server in front of it has it.
    """
    import uvicorn

    from reticent.service.app import create_app
    from reticent.service.connections import Door

    started: list[tuple[Any, threading.Thread, httpx.Client]] = []

    def serve(settings: Settings, secret: str = "", *, under: str = "") -> httpx.Client:
        config = uvicorn.Config(
            create_app(settings),
            port=0,
            log_config=None,
            access_log=False,
            root_path=under,
            http=Door.of(settings),  # type: ignore[arg-type]
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30)
        started.append((server, thread, client))
        return client

    yield serve
    for server, thread, client in started:
        client.close()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def client(place: Place, serve_here: Callable[..., httpx.Client]) -> httpx.Client:
    """A client of acme, on SQLite."""
    return serve_here(place.settings(), place.secret)


@pytest.fixture
def service(any_place: Place) -> Iterator[Any]:
    """A service without its server, on SQLite and again on PostgreSQL."""
    from reticent.service.core import Service

    found = Service(any_place.settings(lease=30.0))
    yield found
    found.close()


@pytest.fixture
def key(any_place: Place, service: Any) -> Any:
    """The key of acme."""
    return service.keys.find(any_place.secret)


def _adjacency_of_rows(bundles: Path) -> Any:
    from reticent import load

    return load(bundles / "rows").guarantee.adjacency
