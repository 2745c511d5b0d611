"""The servers of a round: a shuffler's and an aggregator's, behind the service's own doors."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Party:
    """A shuffler or an aggregator, as its server sees it.

    Attributes:
        round: the round.
        path: last part of the address that it takes posts at.
        take: function from the body of a post, whose object has so many members, to the answer.
        status: function that returns what anybody may know of the round.
        look: function that does a part of what is due, and returns whether more is.
    """

    round: Round
    path: str
    take: Callable[[bytes, int], dict[str, Any]]
    status: Callable[[], dict[str, Any]]
    look: Callable[[], bool]


class Serving(Listening, ABC):
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

    @abstractmethod
    def party(self, opened: ExitStack) -> Party:
        """Return the party. ``opened`` closes what it opens."""


class ShufflerServing(Serving):
    """What a shuffler's server needs to know.

    Attributes:
        to: address of the aggregator.
        insecure: whether to forward over plain http to another machine.
    """

    to: str
    insecure: bool = False

    @override
    def party(self, opened: ExitStack) -> Party:
        round_ = Round.read(self.round, trusted_key=self.trusted_key)
        carrier = opened.enter_context(closing(Carrier(self.to, round_, insecure=self.insecure)))
        shuffler = opened.enter_context(
            closing(Shuffler(round_, self.home, database=self.database))
        )

        def take(content: bytes, names: int) -> dict[str, Any]:
            envelopes = [_decoded(one) for one in parsed(content, _Reports, names=names).reports]
            return shuffler.take(envelopes, now=time.time())

        def look() -> bool:
            if shuffler.finish(now=time.time()) != CLOSED or (batch := shuffler.batch()) is None:
                return False
            carrier.forward(*batch)
            shuffler.forwarded(batch[0]["number"])
            return True

        return Party(round_, "reports", take, shuffler.status, look)


class AggregatorServing(Serving):
    """What an aggregator's server needs to know.

    Attributes:
        bundle: folder of the bundle that devices draw from.
        ledger: file or URL of the books of central costs.
    """

    bundle: Path
    ledger: str = Field(min_length=1, repr=False)

    @override
    def party(self, opened: ExitStack) -> Party:
        from reticent.systems.power.code_encoder import CodeEncoder

        round_ = Round.read(self.round, trusted_key=self.trusted_key)
        encoder = CodeEncoder.load(self.bundle, trusted_key=self.trusted_key)
        books = opened.enter_context(closing(Ledger.open(self.ledger)))
        aggregator = opened.enter_context(
            closing(Aggregator(round_, encoder, self.home, ledger=books, database=self.database))
        )

        def take(content: bytes, names: int) -> dict[str, Any]:
            stated = parsed(content, _Batch, names=names).model_dump()
            aggregator.take(stated, _decoded(stated.pop("reports")))
            return aggregator.status()

        def look() -> bool:
            aggregator.finish()
            return False

        return Party(round_, "batches", take, aggregator.status, look)


class _Reports(StrictBody):
    reports: Annotated[list[Text], Field(min_length=1, max_length=BATCH)]


class _Batch(StrictBody):
    round: Text
    number: Annotated[int, Field(ge=0, le=2**32)]
    total: Annotated[int, Field(ge=1, le=2**32)]
    digest: Text
    signature: Text
    reports: Annotated[str, Field(max_length=2**17)]


def run_round(settings: Serving) -> None:
    """Serve a shuffler or an aggregator of one round, until told to stop.

    Raises:
        InvalidInput, UntrustedSignature: a round, bundle, key or address that cannot be used.
        LedgerUnavailable: a ledger or database that cannot be used.
    """
    uvicorn, options = listening(settings)
    with ExitStack() as opened:
        uvicorn.run(create_app(settings, settings.party(opened)), **options)


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
