"""The servers of a round: a shuffler's and an aggregator's, behind the service's own doors."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import Response
from typing_extensions import override

from reticent.client.gateways import Carrier
from reticent.client.wire import json_bytes
from reticent.core.errors import InvalidInput, ReticentError, UnknownName
from reticent.fleet.aggregator import Aggregator
from reticent.fleet.posts import BATCH, CLOSED
from reticent.fleet.rounds import Round
from reticent.fleet.shuffler import Shuffler
from reticent.ledger.ledger import Ledger
from reticent.service.edge import Admission, Edge, read_body, stated_length
from reticent.service.logs import fault, say
from reticent.service.metrics import Metrics
from reticent.service.problems import RequestRefused
from reticent.service.requests import StrictBody, Text, parsed
from reticent.service.server import listening
from reticent.service.settings import Listening
from reticent.service.structure import Structure

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_PAUSE = 0.5
"""Seconds between two looks at whether a round is over."""


class Serving(Listening):
    """What the server of a round needs to know.

    Attributes:
        round: file of the signed round.
        trusted_key: public key of the aggregator, which signed it.
        home: folder with this party's private keys.
        database: file or URL of what it keeps; None for a file in ``home``.
    """

    round: Path
    trusted_key: Path
    home: Path
    database: str | None = Field(default=None, repr=False)


class ShufflerServing(Serving):
    """What a shuffler's server needs to know.

    Attributes:
        to: address of the aggregator.
        insecure: whether to forward over plain http to another machine.
    """

    to: str
    insecure: bool = False


class AggregatorServing(Serving):
    """What an aggregator's server needs to know.

    Attributes:
        bundle: folder of the bundle that devices draw from.
        ledger: file or URL of the books of central costs.
    """

    bundle: Path
    ledger: str = Field(min_length=1, repr=False)


class _Reports(StrictBody):
    reports: Annotated[list[Text], Field(min_length=1, max_length=BATCH)]


class _Batch(StrictBody):
    round: Text
    number: Annotated[int, Field(ge=0, le=2**32)]
    total: Annotated[int, Field(ge=1, le=2**32)]
    digest: Text
    signature: Text
    reports: Annotated[str, Field(max_length=2**17)]


class Party(ABC):
    """A shuffler or an aggregator, as its server sees it.

    Attributes:
        path: last part of the address that it takes posts at.
        round: the round.
    """

    path: str
    round: Round

    @abstractmethod
    def take(self, content: bytes, names: int) -> dict[str, Any]:
        """Return the answer to the body of a post, whose object has so many members."""

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """Return what anybody may know of the round."""

    @abstractmethod
    def look(self) -> bool:
        """Do a part of what is due, and return whether more is."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""


class ShufflerParty(Party):
    """A shuffler, and its way to the aggregator."""

    path = "reports"

    def __init__(self, settings: ShufflerServing) -> None:
        self.round = Round.read(settings.round, trusted_key=settings.trusted_key)
        self._carrier = Carrier(settings.to, self.round, insecure=settings.insecure)
        self._shuffler = Shuffler(self.round, settings.home, database=settings.database)

    @override
    def take(self, content: bytes, names: int) -> dict[str, Any]:
        envelopes = [_decoded(one) for one in parsed(content, _Reports, names=names).reports]
        return self._shuffler.take(envelopes, now=time.time())

    @override
    def status(self) -> dict[str, Any]:
        return self._shuffler.status()

    @override
    def look(self) -> bool:
        if self._shuffler.finish(now=time.time()) != CLOSED:
            return False
        batch = self._shuffler.batch()
        if batch is None:
            return False
        self._carrier.forward(*batch)
        self._shuffler.forwarded(batch[0]["number"])
        return True

    @override
    def close(self) -> None:
        self._carrier.close()
        self._shuffler.close()


class AggregatorParty(Party):
    """An aggregator, and its books."""

    path = "batches"

    def __init__(self, settings: AggregatorServing) -> None:
        from reticent.systems.power.code_encoder import CodeEncoder

        trusted = settings.trusted_key
        self.round = Round.read(settings.round, trusted_key=trusted)
        encoder = CodeEncoder.load(settings.bundle, trusted_key=trusted)
        self._ledger = Ledger.open(settings.ledger)
        self._aggregator = Aggregator(
            self.round, encoder, settings.home, ledger=self._ledger, database=settings.database
        )

    @override
    def take(self, content: bytes, names: int) -> dict[str, Any]:
        stated = parsed(content, _Batch, names=names).model_dump()
        self._aggregator.take(stated, _decoded(stated.pop("reports")))
        return self.status()

    @override
    def status(self) -> dict[str, Any]:
        return self._aggregator.status()

    @override
    def look(self) -> bool:
        self._aggregator.finish()
        return False

    @override
    def close(self) -> None:
        self._aggregator.close()
        self._ledger.close()


def run_shuffler(settings: ShufflerServing) -> None:
    """Take, shuffle and forward the reports of one round, until told to stop.

    Raises:
        InvalidInput, UntrustedSignature: a round, key or address that cannot be used.
        LedgerUnavailable: the database cannot be used.
    """
    uvicorn, options = listening(settings)
    uvicorn.run(create_app(settings, ShufflerParty(settings)), **options)


def run_aggregator(settings: AggregatorServing) -> None:
    """Take and count what the shuffler of one round forwards, until told to stop.

    Raises:
        InvalidInput, UntrustedSignature: a round, bundle or key that cannot be used.
        LedgerUnavailable: a ledger or database that cannot be used.
    """
    uvicorn, options = listening(settings)
    uvicorn.run(create_app(settings, AggregatorParty(settings)), **options)


def create_app(settings: Serving, party: Party) -> ASGIApp:
    """Return the server of a party as an ASGI application.

    What keeps a round from going on, such as a budget that is too small, is named by its status.

    It answers posts to ``/v1/rounds/ROUND/reports`` (shuffler) or ``batches`` (aggregator), and
    ``/v1/rounds/ROUND`` and ``/healthz`` for anybody. All that the party does happens in one
    thread.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="round")
    admission = Admission(most=settings.queue, per_key=settings.queue)
    path, waits = f"/v1/rounds/{party.round.digest.hex()}", ""

    async def done(work: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(thread, partial(work, *arguments))

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        found = {"/healthz": ("GET", health), path: ("GET", status)}
        found[f"{path}/{party.path}"] = ("POST", posted)
        method, endpoint = found.get(scope["path"], ("", None))
        if endpoint is None:
            raise UnknownName(f"path: expected {', '.join(found)}")
        if scope["method"] != method:
            raise RequestRefused(405, f"method: expected {method} for this path")
        scope["endpoint"] = endpoint
        told = await endpoint(scope, receive)
        response = Response(json_bytes(told), media_type="application/json")
        await response(scope, receive, send)

    async def health(scope: Scope, receive: Receive) -> dict[str, Any]:
        return {"status": "ok"}

    async def status(scope: Scope, receive: Receive) -> dict[str, Any]:
        return {**await asyncio.to_thread(party.status), "waits": waits}

    async def posted(scope: Scope, receive: Receive) -> dict[str, Any]:
        stated = stated_length(Headers(scope=scope), most=settings.most_bytes)
        structure = Structure(lists=1, items=BATCH + 8)
        with admission.body_of(str((scope.get("client") or ("",))[0]), stated):
            content = await read_body(
                receive, stated=stated, seconds=settings.deadline, structure=structure
            )
            found: dict[str, Any] = await done(party.take, content, structure.names)
        return found

    async def looking() -> None:
        nonlocal waits
        while True:
            more = False
            try:
                more = await done(party.look)
                waits = ""
            except ReticentError as error:
                waits = type(error).__name__
                say("round waits", level=logging.ERROR, **fault(error))
            if not more:
                await asyncio.sleep(_PAUSE)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        look = asyncio.create_task(looking())
        say("started", round=party.round.digest.hex()[:16])
        yield
        look.cancel()
        with suppress(asyncio.CancelledError):
            await look
        await asyncio.to_thread(thread.shutdown)
        party.close()
        say("stopped")

    plain = Starlette(lifespan=lifespan)
    edge = Edge(answered, admission=admission, metrics=Metrics())

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await (edge if scope["type"] == "http" else plain)(scope, receive, send)

    return application


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("reports: expected base64") from error
