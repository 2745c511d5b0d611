"""Everything that one worker of the service holds, and what its routes do in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from secrets import token_hex
from typing import Any, TypeVar

from reticent.core import bindings
from reticent.core.errors import BudgetExceeded, InvalidInput, NotPermitted
from reticent.ledger.charges import delta_value, epsilon_value
from reticent.ledger.ledger import Ledger
from reticent.service.answering import Answer, Answering, Asked, Request
from reticent.service.bodies import free_body
from reticent.service.catalogue import Catalogue, ServedBundle
from reticent.service.drawing import Question
from reticent.service.edge import Admission
from reticent.service.keys import ApiKey, KeyStore, digest_of
from reticent.service.metrics import Metrics
from reticent.service.models import ModelShelf
from reticent.service.requests import Answers, Preview, parsed, request_digest, subjects_of
from reticent.service.settings import Settings
from reticent.service.signing import Signer
from reticent.service.together import Together, waited_too_long
from reticent.service.writer import GroupWriter

T = TypeVar("T")

_REMEMBERED = 0.5
"""Seconds for which a valid key is not looked up again. Where something is charged it always is."""

_MOST_REMEMBERED = 10_000

_OTHER_THREADS = 4
"""For routes that charge nothing."""


class Service:
    """One worker: bundles, ledger, keys and threads.

    Args:
        settings: see ``Settings``.

    Attributes:
        settings: as given.
        ledger: opened, and checked against its anchor.
        catalogue, shelf: bundles, and models of released values.
        keys: who may ask.
        admission, metrics: of this worker.

    Raises:
        InvalidInput, CorruptBundle, UntrustedSignature: a bundle or a key that cannot be used.
        LedgerUnavailable: no ledger, or one that is older than its anchor.
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
        self.keys = KeyStore(self.ledger.store)
        self.admission = Admission(most=settings.queue, per_key=settings.per_key)
        self.metrics = Metrics()
        self._writer = GroupWriter(self.ledger)
        self.answering = Answering(
            self.ledger, self.keys, self.signer, self._writer, lease=settings.lease
        )
        self._together = Together(
            self.answering, threads=settings.threads, deadline=settings.deadline
        )
        self._threads = ThreadPoolExecutor(_OTHER_THREADS, thread_name_prefix="other")
        self._known: dict[bytes, tuple[ApiKey, float]] = {}

    def close(self) -> None:
        """Finishes what is under way."""
        self._together.close()
        self._threads.shutdown(wait=True)
        self._writer.close()
        self.ledger.close()

    async def key_of(self, secret: str) -> ApiKey:
        """The key that ``secret`` is, as of half a second ago at most.

        Raises:
            NotAuthenticated: it is none that is valid.
        """
        digest, now = digest_of(secret), time.monotonic()
        known = self._known.get(digest)
        if known is not None and now < known[1]:
            return known[0]
        key = await asyncio.to_thread(self.keys.find, secret)
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[digest] = key, now + _REMEMBERED
        return key

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """What ``work`` returns, in a thread.

        Raises:
            ServiceBusy: its turn did not come within the deadline; it was not begun.
        """
        latest = time.monotonic() + self.settings.deadline

        def begun() -> T:
            with self.answering.turn():
                if time.monotonic() > latest:
                    raise waited_too_long(self.settings.deadline)
                return work(*arguments)

        return await asyncio.get_running_loop().run_in_executor(self._threads, begun)

    async def answered(
        self,
        key: ApiKey,
        bundle: ServedBundle,
        idempotency_key: str,
        content: bytes,
        *,
        nonce: str = "",
    ) -> Answer:
        """The answer to a body; see ``Answering`` and ``Together`` for what it raises."""
        asked = partial(self.asked, key, bundle, idempotency_key, content, nonce=nonce)
        return await self._together.answer(asked, size=len(content))

    def asked(
        self,
        key: ApiKey,
        bundle: ServedBundle,
        idempotency_key: str,
        content: bytes,
        *,
        nonce: str = "",
    ) -> Asked | Answer:
        """What a body asks, or its answer where that is free.

        Args:
            key: who asks.
            bundle: what is asked.
            idempotency_key: the client's name for the request.
            content: the body.
            nonce: the client's; "" draws one that nobody keeps.

        Raises:
            InvalidInput, NotPermitted: nothing was charged.
        """
        body = parsed(content, Answers)
        rows = len(body.rows)
        if rows > self.settings.most_rows:
            raise InvalidInput(f"rows: expected at most {self.settings.most_rows}, got {rows}")
        if bundle.route == "free":
            inputs = bundle.inputs(body.rows, body.columns)
            values = bundle.predict(inputs)
            free = free_body(values, bundle.identity, bundle.widest(values))
            return Answer(free, repeated=False, rows=rows)
        subjects = subjects_of(body, rows)
        scope, names = bundle.scopes(key.principal, subjects)
        key.check_subjects(names)
        request = Request(
            key,
            idempotency_key,
            request_digest(self.signer.secret, bundle=bundle.identity, body=body, nonce=nonce),
            bindings.request_digest(nonce or token_hex(16), bundle.identity, content),
        )
        inputs = bundle.inputs(body.rows, body.columns)
        return Asked(request, Question(bundle, inputs, scope))

    def previewed(self, key: ApiKey, bundle: ServedBundle, content: bytes) -> dict[str, Any]:
        """What a request would cost; nothing is written.

        Raises:
            InvalidInput, NotPermitted, IncompatibleGuarantees: as the request would.
        """
        body = parsed(content, Preview)
        answers = body.answers or len(body.subjects or ())
        if not answers:
            raise InvalidInput("answers: expected how many, or subjects with one for each")
        told: dict[str, Any] = {"bundle": bundle.identity, "answers": answers}
        if bundle.route == "free":
            told |= {"epsilon": 0.0, "delta": 0.0, "fits": True, "largest": None, "reason": ""}
            return told
        scope, names = bundle.scopes(key.principal, subjects_of(body, answers))
        key.check_subjects(names)
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

    def anchored(self) -> dict[str, Any]:
        """The ledger's last position, signed.

        Raises:
            LedgerUnavailable: it is older than its anchor.
        """
        self.ledger.check_anchor()
        return self.signer.anchor(self.ledger.anchor())


def check_role(key: ApiKey, role: str) -> None:
    """Refuses a key that is for something else.

    Raises:
        NotPermitted: says what it is for.
    """
    if key.role != role:
        raise NotPermitted(
            f"key: expected one of an {role}"
            if role == "owner"
            else ("key: expected one of a client; an owner's looks and does not ask")
        )
