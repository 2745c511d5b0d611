"""Retries, step by step and without a network: what is repeated, how long, and as what error it
ends.
"""

from __future__ import annotations

from typing import Any

import pytest

from reticent.client.steps import Call, Lost, Pause, Reply, Retries, persistent
from reticent.core.errors import ReticentError

CALL = Call("POST", "/v1/answers", (("Idempotency-Key", "one-of-a-test"),), b"{}")


def played(outcomes: list[Reply | Lost], retries: Retries) -> tuple[Any, list[Call], list[float]]:
    """How a conversation ends, its calls and pauses, where calls end like ``outcomes``."""
    calls: list[Call] = []
    pauses: list[float] = []
    steps, sent, left = persistent(CALL, retries, hint="do this"), None, list(outcomes)
    while True:
        try:
            step = steps.send(sent)
        except StopIteration as done:
            return done.value, calls, pauses
        except ReticentError as error:
            return error, calls, pauses
        sent = None
        if isinstance(step, Pause):
            pauses.append(step.seconds)
        else:
            calls.append(step)
            sent = left.pop(0)


def reply(status: int, **headers: str) -> Reply:
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, b"")


@pytest.mark.parametrize("status", [409, 429, 500, 502, 503, 504])
def test_what_may_pass_is_repeated_with_the_same_key_and_body(status: int) -> None:
    found, calls, pauses = played([reply(status), Lost("ReadError"), reply(200)], Retries())
    assert found.status == 200
    assert calls == [CALL] * 3
    assert len(pauses) == 2


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 410, 413, 422])
def test_what_is_decided_is_not_asked_again(status: int) -> None:
    found, calls, pauses = played([reply(status)], Retries())
    assert (found.status, len(calls), pauses) == (status, 1, [])


def test_pauses_double_and_wait_as_long_as_the_server_asks_but_not_forever() -> None:
    retries = Retries(attempts=9, first_pause=0.1, longest_pause=3.0)
    _, _, pauses = played([reply(503)] * 9, retries)
    for attempt, pause in enumerate(pauses):
        own = min(3.0, 0.1 * 2.0**attempt)
        assert own / 2 <= pause <= own
    asked = played([reply(429, retry_after="2"), reply(200)], retries)[2]
    assert asked == [2.0]
    assert played([reply(429, retry_after="900"), reply(200)], retries)[2] == [3.0]
    assert played([reply(429, retry_after="soon"), reply(200)], retries)[2][0] <= 0.1
