"""The outermost layer: every request gets a name, a bound, one shape of error, one line of log."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from reticent.core.errors import ServiceBusy
from reticent.service.logs import fault, say
from reticent.service.metrics import Metrics
from reticent.service.problems import CONTENT_TYPE, Problem, RequestRefused
from reticent.service.structure import Structure

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

JSON = "application/json"

LONGEST_HEAD = 2**15
"""Bytes of a request's first line and headers."""

_UNCOUNTED = ("/", "/healthz", "/openapi.json")
"""Paths whose answers are kept ready: they wait for nobody, and take no place."""

_ONCE = (
    b"authorization",
    b"content-length",
    b"content-type",
    b"cookie",
    b"host",
    b"idempotency-key",
    b"request-nonce",
    b"transfer-encoding",
)
"""Headers that a proxy and a server could each take another of, where there are two."""

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)

_REFUSALS = 25
"""Refusals that one client gets at once, and then each second. Those without a valid key are one
client together: to refuse costs a server as much as it costs to ask.
"""


class Admission:
    """The bounds on what one worker holds at once: requests, bytes of bodies, and refusals.

    Requests and bytes are bounded in all and for each key. It counts what is in this process now.
    Answers are counted in the ledger.

    Args:
        most: requests in all.
        per_key: requests of one key.
        most_bytes: bytes of bodies of one key. All keys together may hold four times as many.
    """

    def __init__(self, *, most: int, per_key: int, most_bytes: int = 2**24) -> None:
        self._most, self._per_key, self._most_bytes = most, per_key, most_bytes
        self._held: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._refused: dict[str, float] = {}
        self.held = 0

    @contextmanager
    def one(self) -> Iterator[Callable[[], None]]:
        """Hold a request while the block runs, or until the function that it yields is called.

        Raises:
            ServiceBusy: there are too many.
        """
        if self.held >= self._most:
            raise ServiceBusy(
                f"the service holds {self._most} requests already; nothing was charged. Repeat "
                "the request a little later"
            )
        self.held += 1
        holds = True

        def release() -> None:
            nonlocal holds
            self.held -= holds
            holds = False

        try:
            yield release
        finally:
            release()

    @contextmanager
    def one_of(self, key: str) -> Iterator[None]:
        """Hold a request of ``key`` while the block runs.

        Raises:
            ServiceBusy: the key has too many.
        """
        if self._held[key] >= self._per_key:
            raise ServiceBusy(
                f"this key has {self._per_key} requests under way already; nothing was charged. "
                "Repeat the request a little later"
            )
        with _counted(self._held, key, 1):
            yield

    @contextmanager
    def body_of(self, key: str, size: int) -> Iterator[None]:
        """Hold ``size`` bytes of a body of ``key`` while the block runs.

        Raises:
            ServiceBusy: the key's bodies, or all bodies, are too many bytes.
        """
        total = self._bytes.total()
        if self._bytes[key] + size > self._most_bytes or total + size > 4 * self._most_bytes:
            raise ServiceBusy(
                f"the service holds {self._bytes[key]} bytes of this key's requests and {total} in "
                "all; nothing was charged. Repeat the request a little later"
            )
        with _counted(self._bytes, key, size):
            yield

    def wait_of(self, key: str) -> float:
        """Return the seconds until ``key`` gets its next refusal. "" stands for all without a
        key.
        """
        now = time.monotonic()
        if len(self._refused) > _MOST_REFUSED:
            self._refused = {one: until for one, until in self._refused.items() if until > now}
        self._refused[key] = max(self._refused.get(key, 0.0), now - 1.0) + 1 / _REFUSALS
        return max(0.0, self._refused[key] - now)


_MOST_REFUSED = 1000
"""Keys whose refusals are remembered, before those that wait for none are forgotten."""


@contextmanager
def _counted(counts: Counter[str], key: str, more: int) -> Iterator[None]:
    counts[key] += more
    try:
        yield
    finally:
        counts[key] -= more
        if not counts[key]:
            del counts[key]


class Edge:
    """ASGI middleware around everything else.

    Args:
        app: the application that answers.
        admission, metrics: bounds and counts of this worker.
    """

    def __init__(self, app: ASGIApp, *, admission: Admission, metrics: Metrics) -> None:
        self._app, self._admission, self._metrics = app, admission, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name, started, status = token_hex(8), time.perf_counter(), 0
        state = scope.setdefault("state", {})
        state["request"] = name
        release: Callable[[], None] = _nothing
        admitted = False

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                # Whoever is slow to read an answer waits outside of the queue.
                release()
                status = message["status"]
                key = state.get("fields", {}).get("key", "")
                # Who has shown no key and was not turned away at the door tried one that is none.
                if status in _REFUSED or (status == 429 and admitted and not key):
                    await asyncio.sleep(self._admission.wait_of(key))
                message["headers"] = [
                    *message["headers"],
                    *_HEADERS,
                    (b"x-request-id", name.encode()),
                ]
            await send(message)

        try:
            _check_head(scope)
            if scope["path"] in _UNCOUNTED:
                await self._app(scope, receive, noting)
            else:
                with self._admission.one() as release:
                    admitted = True
                    await self._app(scope, receive, noting)
        except Exception as error:
            # Nothing of it may reach the server above, which would log its message.
            problem = Problem.of(error)
            if problem.status >= 500:
                say("fault", level=logging.ERROR, request=name, **fault(error))
            told = problem if not status else None
            # Frames of its traceback hold the body, while a client is slow to read why.
            error.__traceback__ = None
        else:
            told = None
        if told is not None:
            await send_problem(told, name, noting)
        seconds = time.perf_counter() - started
        route = _route(scope)
        self._metrics.request(route, status, seconds)
        self._metrics.held(self._admission.held)
        say(
            "request",
            request=name,
            route=route,
            method=scope["method"] if scope["method"] in _METHODS else "other",
            status=status,
            milliseconds=round(seconds * 1000, 1),
            **state.get("fields", {}),
        )


_REFUSED = frozenset({400, 401, 404, 405, 408, 411, 413, 415, 422, 431})
"""Statuses of what a client could have known to be wrong, and nobody waits for."""

_METHODS = ("GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")


async def send_problem(problem: Problem, name: str, send: Send) -> None:
    """Send a problem as the whole response."""
    body = problem.body(name)
    headers = {
        "content-type": CONTENT_TYPE,
        "content-length": str(len(body)),
        **{key.lower(): value for key, value in problem.headers.items()},
    }
    await send(
        {
            "type": "http.response.start",
            "status": problem.status,
            "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})


def stated_length(headers: Mapping[str, str], *, most: int, kinds: Sequence[str] = (JSON,)) -> int:
    """Return the bytes of a request's body, as its head states them.

    Args:
        headers: the request's headers, by names in any case.
        most: bytes at most.
        kinds: media types of which it may be.

    Raises:
        RequestRefused: the body is longer, of another type, or has no length.
    """
    stated = headers.get("content-length")
    if stated is None:
        raise RequestRefused(411, "Content-Length: expected the number of bytes of the body")
    if not stated.isascii() or not stated.isdigit() or len(stated) > 12 or int(stated) > most:
        raise RequestRefused(413, f"Content-Length: expected at most {most} bytes")
    if media_type(headers) not in kinds:
        raise RequestRefused(415, f"Content-Type: expected {' or '.join(kinds)}")
    return int(stated)


def media_type(headers: Mapping[str, str]) -> str:
    """Return the media type that the header Content-Type names, in small letters, or ""."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(
    receive: Receive, *, stated: int, seconds: float, structure: Structure | None
) -> bytes:
    """Read the body of a request, within its bounds.

    Args:
        receive: function that gives the next part of the body.
        stated: bytes that it has, from ``stated_length``.
        seconds: time within which all of it must have come.
        structure: counter of its lists, cells and names while it arrives, or None where it is no
            JSON.

    Raises:
        RequestRefused: the body is longer, slower or cut off.
        InvalidInput: more lists, cells or names than ``structure`` allows.
    """
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestRefused(400, "body: expected it whole, got a part")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if size > stated:
                    raise RequestRefused(413, f"body: expected at most {stated} bytes")
                if structure is not None:
                    structure.feed(part)
                parts.append(part)
    except TimeoutError:
        raise RequestRefused(408, f"body: expected it whole within {seconds:g} s") from None
    return b"".join(parts)


def _check_head(scope: Scope) -> None:
    """Refuse a head that is too long, says something twice, or names what no database takes."""
    headers = scope["headers"]
    target = scope.get("raw_path", b""), scope.get("query_string", b"")
    size = sum(map(len, target)) + sum(len(name) + len(value) + 4 for name, value in headers)
    if size > LONGEST_HEAD:
        raise RequestRefused(431, f"headers: expected at most {LONGEST_HEAD} bytes of them")
    names = [name for name, _ in headers if name in _ONCE]
    if len(set(names)) < len(names):
        raise RequestRefused(400, "headers: expected each at most once")
    if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
        raise RequestRefused(400, "path, query: expected text without the character U+0000")
    for name, value in headers:
        if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise RequestRefused(415, "Content-Encoding: expected a body that is not compressed")


def _nothing() -> None:
    """Hold nothing."""


def _route(scope: Scope) -> str:
    endpoint: Any = scope.get("endpoint")
    return getattr(endpoint, "__name__", "none")
