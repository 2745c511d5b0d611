"""The outermost layer: bounds, one shape of error, and no text of a fault."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import nullcontext
from typing import Any

import pytest

from reticent.core.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerUnavailable,
    ReticentError,
    ServiceBusy,
)
from reticent.service.edge import Admission, Edge, read_body
from reticent.service.logs import JsonLines
from reticent.service.metrics import Metrics
from reticent.service.problems import Problem, RequestRefused
from reticent.service.structure import Structure


def call(error: Exception | None, headers: list[tuple[bytes, bytes]] = ()) -> tuple[int, Any]:  # type: ignore[assignment]
    """Status and body of a request whose application raises ``error``."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert error is not None
        raise error

    async def send(message: Any) -> None:
        sent.append(message)

    edge = Edge(app, admission=Admission(most=1, per_key=1), metrics=Metrics())
    scope = {"type": "http", "method": "GET", "path": "/secret", "headers": list(headers)}
    asyncio.run(edge(scope, None, send))  # type: ignore[arg-type]
    return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BudgetExceeded("left epsilon=0"), 403, 12),
        (LedgerUnavailable("down [secret]"), 503, 13),
        (ServiceBusy("busy"), 429, 24),
        (RequestRefused(413, "long"), 413, 2),
        (ReticentError("secret"), 500, 70),
        (KeyError("secret"), 500, 70),
        (ValueError("secret"), 500, 70),
    ],
)
def test_every_error_is_a_problem_and_a_fault_says_nothing(
    caplog: pytest.LogCaptureFixture, error: Exception, status: int, code: int
) -> None:
    caplog.set_level(logging.DEBUG, logger="reticent.service")
    assert call(error)[0] == status
    problem = call(error)[1]
    assert (problem["status"], problem["code"]) == (status, code)
    written = [JsonLines().format(record) for record in caplog.records]
    assert len(written) == (4 if status >= 500 else 2)
    for text in (*written, json.dumps(problem)):
        assert "secret" not in text
    if status >= 500:
        assert '"error": "' + type(error).__name__ in written[0]


def test_admission_counts_what_is_held_now() -> None:
    admission = Admission(most=3, per_key=2)
    with admission.one(), admission.one_of("a"), admission.one(), admission.one_of("a"):
        with admission.one(), pytest.raises(ServiceBusy, match="this key"):
            admission.one_of("a").__enter__()
        with admission.one(), pytest.raises(ServiceBusy, match="holds 3"):
            admission.one().__enter__()
    assert admission.held == 0
    assert not admission._held


def test_whoever_is_slow_to_read_an_answer_holds_no_place() -> None:
    admission = Admission(most=1, per_key=1)
    held: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        held.append(admission.held)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        held.append(admission.held)

    edge = Edge(app, admission=admission, metrics=Metrics())
    scope = {"type": "http", "method": "GET", "path": "/card", "headers": []}
    asyncio.run(edge(scope, None, send))  # type: ignore[arg-type]
    assert held == [1, 0]


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([b"{", None], 408),  # and then nothing
        ([b"{", b"gone"], 400),
        ([b"1" * 60, b"1" * 60], 413),  # more than was stated
    ],
)
def test_a_body_that_is_slow_cut_off_or_too_long_is_refused(
    parts: list[bytes | None], status: int
) -> None:
    waiting = iter(parts)

    async def receive() -> Any:
        part = next(waiting)
        if part is None:
            await asyncio.sleep(60)
        if part == b"gone":
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": True}

    structure = Structure(lists=1, items=1)
    with pytest.raises(RequestRefused) as refused:
        asyncio.run(read_body(receive, stated=50, seconds=0.05, structure=structure))
    assert Problem.of(refused.value).status == status


@pytest.mark.parametrize("lists", [2000, 2001])
def test_a_body_is_counted_alike_in_whatever_parts_it_comes(lists: int) -> None:
    """Long parts are counted in another way than short ones."""
    body = b'{"rows": [%b], "subject": "[[,,{\\"[\\\\"}' % b",".join([b"[1]"] * 2000)
    for size in (1, 100, 5000, len(body)):
        structure = Structure(lists=lists, items=2000)
        with pytest.raises(InvalidInput) if lists == 2000 else nullcontext():
            for start in range(0, len(body), size):
                structure.feed(body[start : start + size])
            assert structure.names == 2
    structure = Structure(lists=1, items=1)
    with pytest.raises(InvalidInput, match="characters"):
        list(map(structure.feed, [b'"', *[b"a" * 2**12] * 2**6]))
