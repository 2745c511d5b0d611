"""The state of one worker, and the work of its routes in threads."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import sqlalchemy as sa

from reticent.core import bindings
from reticent.core.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerUnavailable,
    NotAuthenticated,
    NotPermitted,
    ServiceBusy,
)
from reticent.core.files import read_regular
from reticent.ledger.chain import Page
from reticent.ledger.charges import delta_value, epsilon_value
from reticent.ledger.ledger import Ledger
from reticent.ledger.schema import api_keys, service_answers
from reticent.service.answering import Answer, Answering, Asked, Request
from reticent.service.bodies import free_body
from reticent.service.catalogue import Catalogue, ServedBundle
from reticent.service.drawing import Question
from reticent.service.edge import JSON, Admission, read_body, stated_length
from reticent.service.keys import ApiKey, KeyStore, digest_of
from reticent.service.metrics import Metrics
from reticent.service.models import ModelShelf
from reticent.service.requests import Answers, Preview, parsed, request_digest, subjects_of
from reticent.service.settings import Settings
from reticent.service.signing import Signer
from reticent.service.structure import Structure
from reticent.service.together import Together, Turn
from reticent.service.watch import Watch

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Receive

T = TypeVar("T")

_REMEMBERED = 0.5
"""Seconds for which a valid key is not looked up again. Where something is charged it always is."""

_MOST_REMEMBERED = 10_000

_HEALTHY = 1.0
"""Seconds for which it is believed that the ledger can be charged, or cannot."""

_SHORTEST = 32
"""Characters of the secret for metrics."""

_MOST_STRANGERS = 8
"""Keys that were not valid before, and are looked up at once."""

_OTHER_THREADS = 4
"""For routes that charge nothing."""


class Service:
    """One worker: bundles, ledger, keys and threads.

    Args:
        settings: the service's ``Settings``.

    Attributes:
        settings: the settings as given.
        ledger: the ledger, opened and checked against its anchor.
        catalogue, shelf: bundles, and models of released values.
        keys: keys of those who may ask.
        admission, metrics: bounds and counts of this worker.

    Raises:
        InvalidInput, CorruptBundle, UntrustedSignature: a bundle or a key cannot be used.
        LedgerUnavailable: there is no ledger, or it is older than its anchor.
        CorruptLedger: the ledger does not match its own entries.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.signer = Signer(settings.signing_key)
        self.catalogue = Catalogue(
            settings.bundles,
            trusted_with=settings.trusted_with,
            trusted_key=settings.trusted_key,
        )
        self.shelf = ModelShelf(settings.models, trusted_key=settings.trusted_key)
        self.ledger = Ledger.open(
            settings.ledger, synchronous="FULL" if settings.durable else "NORMAL"
        )
        self.watch = Watch(self.ledger, settings.ledger)
        self.keys = KeyStore(self.ledger)
        self.admission = Admission(
            most=settings.queue, per_key=settings.per_key, most_bytes=settings.most_bytes
        )
        self.metrics = Metrics()
        self.answering = Answering(self.ledger, self.keys, self.signer, lease=settings.lease)
        self._together = Together(
            self.answering, threads=settings.threads, deadline=settings.deadline
        )
        self._threads = ThreadPoolExecutor(_OTHER_THREADS, thread_name_prefix="other")
        # Whoever tries keys does not stand in the way of those whose keys were valid before.
        self._lookups = ThreadPoolExecutor(1, "known"), ThreadPoolExecutor(1, "unknown")
        self._finding: dict[bytes, asyncio.Future[ApiKey]] = {}
        self._strangers = 0
        self._health = ThreadPoolExecutor(1, "health")
        self._looked: tuple[asyncio.Future[Any], float] | None = None
        self._scraper = _metrics_digest(settings.metrics_key)
        self._known: dict[bytes, tuple[ApiKey, float]] = {}

    def close(self) -> None:
        """Finish what is under way."""
        self.watch.close()
        self._together.close()
        for threads in (self._threads, self._health, *self._lookups):
            threads.shutdown(wait=True)
        self.ledger.close()

    async def key_of(self, secret: str) -> ApiKey:
        """Return the key of ``secret``, as it was half a second ago at most.

        Raises:
            NotAuthenticated: no valid key has this secret.
        """
        digest, now = digest_of(secret), time.monotonic()
        known = self._known.get(digest)
        if known is not None and now < known[1]:
            return known[0]
        finding = self._finding.get(digest)
        if finding is None:
            finding = self._find(secret, digest, known is None)
        try:
            key = await asyncio.shield(finding)
        except NotAuthenticated:
            self._known.pop(digest, None)
            raise
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[digest] = key, now + _REMEMBERED
        return key

    def _find(self, secret: str, digest: bytes, stranger: bool) -> asyncio.Future[ApiKey]:
        """Look a key up, once however many ask with it."""
        if stranger and self._strangers >= _MOST_STRANGERS:
            raise ServiceBusy("too many unknown keys at once; repeat the request a little later")
        loop = asyncio.get_running_loop()
        finding = loop.run_in_executor(self._lookups[stranger], self.keys.find, secret)
        self._finding[digest] = finding
        self._strangers += stranger

        def found(_: object) -> None:
            del self._finding[digest]
            self._strangers -= stranger

        finding.add_done_callback(found)
        return finding

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work`` in a thread, and return its result.

        Raises:
            ServiceBusy: its turn did not come within the deadline. It was not begun.
        """
        turn = Turn(partial(work, *arguments), self.settings.deadline)

        def begun() -> T:
            with self.answering.turn:
                return turn.begin()()

        return await turn.waited(asyncio.get_running_loop().run_in_executor(self._threads, begun))

    @asynccontextmanager
    async def body(
        self,
        key: ApiKey,
        headers: Headers,
        receive: Receive,
        structure: Structure | None,
        kinds: Sequence[str] = (JSON,),
    ) -> AsyncIterator[bytes]:
        """Yield the body of a request. Its bytes count for its key while the block runs.

        Raises:
            ServiceBusy: too many bytes of this key are here.
            InvalidInput: the body cannot be used.
        """
        stated = stated_length(headers, most=self.settings.most_bytes, kinds=kinds)
        with self.admission.body_of(key.id, stated):
            yield await read_body(
                receive, stated=stated, seconds=self.settings.deadline, structure=structure
            )

    async def answered(
        self,
        key: ApiKey,
        bundle: ServedBundle,
        idempotency_key: str,
        content: bytes,
        *,
        nonce: str = "",
        read: Callable[[bytes], Answers] | None = None,
    ) -> Answer:
        """Return the answer to a body. It raises what ``Answering`` and ``Together`` raise."""
        asked = partial(self.asked, key, bundle, idempotency_key, content, nonce=nonce, read=read)
        return await self._together.answer(asked, size=len(content))

    def asked(
        self,
        key: ApiKey,
        bundle: ServedBundle,
        idempotency_key: str,
        content: bytes,
        *,
        nonce: str = "",
        read: Callable[[bytes], Answers] | None = None,
    ) -> Asked | Answer:
        """Return what a body asks, or its answer where that is free.

        Args:
            key: the key of whoever asks.
            bundle: the bundle that is asked.
            idempotency_key: the client's name for the request.
            content: the body.
            nonce: the client's nonce, or "" to draw one that nobody keeps.
            read: function that reads the body, or None where it is JSON.

        Raises:
            InvalidInput, NotPermitted: nothing was charged.
        """
        self.watch.check()
        body = parsed(content, bundle.asks) if read is None else read(content)
        rows, most = len(body.rows), bundle.most_rows(self.settings.most_rows)
        if rows > most:
            raise InvalidInput(f"rows: expected at most {most}, got {rows}")
        if bundle.route == "free":
            inputs = bundle.inputs(body.rows, body.columns)
            values = bundle.predict(inputs)
            free = free_body(values, bundle.identity, bundle.widest(values))
            return Answer(free, repeated=False, rows=rows)
        subjects = subjects_of(body, rows)
        scope, charged = bundle.scopes(key.principal, subjects)
        key.check_subjects(charged)
        inputs = bundle.inputs(body.rows, body.columns)
        bound = bindings.request_digest(nonce or token_hex(16), bundle.identity, content)
        digest = request_digest(
            self.signer.secret,
            bundle=bundle.identity,
            body=body,
            table=np.asarray(inputs),
            bound=bound if nonce else "",
        )
        request = Request(key, idempotency_key, digest, bound)
        return Asked(request, Question(bundle, inputs, scope))

    def previewed(
        self, key: ApiKey, bundle: ServedBundle, content: bytes, names: int | None = None
    ) -> dict[str, Any]:
        """Return what a request would cost. Nothing is written.

        Raises:
            InvalidInput, NotPermitted, IncompatibleGuarantees: the request would be refused so.
        """
        body = parsed(content, Preview, names=names)
        answers = body.answers or len(body.subjects or ())
        if not answers:
            raise InvalidInput("answers: expected how many, or subjects with one for each")
        told: dict[str, Any] = {"bundle": bundle.identity, "answers": answers}
        if bundle.route == "free":
            told |= {"epsilon": 0.0, "delta": 0.0, "fits": True, "largest": None, "reason": ""}
            return told
        scope, charged = bundle.scopes(key.principal, subjects_of(body, answers))
        key.check_subjects(charged)
        event = bundle.price.event
        if isinstance(scope, list):
            each = self.ledger.preview_each(scope, event)
            total = event.guarantee.epsilon * answers, event.guarantee.delta * answers
            told |= {"epsilon": total[0], "delta": total[1], "fits": each.fits, "largest": None}
            return told | {"reason": each.reason}
        try:
            one = self.ledger.preview(scope, event, answers=answers)
        except BudgetExceeded as error:  # no budget answers for the scope
            total = event.guarantee.epsilon * answers, event.guarantee.delta * answers
            told |= {"epsilon": total[0], "delta": total[1], "fits": False, "largest": 0}
            return told | {"reason": str(error)}
        told |= {
            "epsilon": epsilon_value(one.charge.epsilon),
            "delta": delta_value(one.charge.delta),
            "fits": one.fits,
            "largest": one.largest,
        }
        return told | {"reason": "" if one.fits else "the budget has less left"}

    async def check_chargeable(self) -> None:
        """Refuse where the next charge would be refused. It looks once a second at most.

        Raises:
            LedgerUnavailable, CorruptLedger: the ledger cannot be charged.
        """
        self.watch.check()
        now = time.monotonic()
        if self._looked is None or (self._looked[0].done() and now > self._looked[1]):
            loop = asyncio.get_running_loop()
            look = loop.run_in_executor(self._health, self.ledger.post_together, [_read_rows])
            self._looked = look, now + _HEALTHY
        found = self._looked[0]
        await asyncio.wait([found], timeout=self.settings.deadline)
        if not found.done():
            raise LedgerUnavailable("others have written to the ledger for too long")
        found.result()

    def opens_metrics(self, secret: str) -> bool:
        """Return whether ``secret`` is the one for metrics alone."""
        return self._scraper is not None and hmac.compare_digest(digest_of(secret), self._scraper)

    def anchored(self) -> dict[str, Any]:
        """Return the ledger's last position, signed.

        Raises:
            LedgerUnavailable: the ledger is older than its anchor.
        """
        self.ledger.check_anchor()
        return self.signer.anchor(self.ledger.anchor())


def _read_rows(page: Page) -> None:
    """Read what a charge reads beside the chain, and write nothing."""
    for table in (api_keys, service_answers):
        page.connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).all()


def _metrics_digest(file: Path | None) -> bytes | None:
    """Return the digest of the secret in ``file``.

    Raises:
        InvalidInput: no such file, or a secret that could be guessed.
    """
    if file is None:
        return None
    secret = read_regular(file, most=1024).decode("ascii", "replace").strip()
    if len(secret) < _SHORTEST:
        raise InvalidInput(
            f"metrics_key={str(file)!r}: expected at least {_SHORTEST} characters; make it with "
            "`openssl rand -hex 32`"
        )
    return digest_of(secret)


def check_role(key: ApiKey, role: str) -> None:
    """Refuse a key that is for something else.

    Raises:
        NotPermitted: the key has another role. The message names it.
    """
    if key.role != role:
        raise NotPermitted(
            f"key: expected one of an {role}"
            if role == "owner"
            else ("key: expected one of a client; an owner's looks and does not ask")
        )
