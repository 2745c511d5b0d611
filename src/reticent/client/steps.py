"""A client's work over the network, as steps that somebody else carries out.

So one description of retries serves the plain and the asynchronous client. A conversation is a
generator. It yields ``Call`` and ``Pause``, is sent a ``Reply`` or a ``Lost`` for every call, and
returns its result.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from reticent.core.checks import count, positive
from reticent.core.errors import InvalidInput, ReticentError, ServiceUnreachable

T = TypeVar("T")

_RETRIED = frozenset({409, 429, 500, 502, 503, 504})
"""What may be different the next time: under way, busy, or a server that failed on the way."""


@dataclass(frozen=True)
class Call:
    """One HTTP request.

    Attributes:
        method, path: method and path, such as "GET" and "/v1/budget".
        headers: headers beside those that every request has.
        content: the body, or b"" for none.
        most: bytes of a reply's body at most.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes = field(default=b"", repr=False)
    most: int = 2**28


@dataclass(frozen=True)
class Reply:
    """One HTTP response.

    Attributes:
        status: status of HTTP.
        headers: headers by their name in small letters.
        content: the body.
    """

    status: int
    headers: dict[str, str]
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class Lost:
    """A call without a reply. Whether the server has seen it is not known.

    Attributes:
        reason: what failed, without an address or a body.
    """

    reason: str


@dataclass(frozen=True)
class Pause:
    """A wait before the next step.

    Attributes:
        seconds: length of the wait, at least 0.
    """

    seconds: float


@dataclass(frozen=True)
class Advance:
    """Rows of a table that have been answered.

    Attributes:
        done, total: numbers of rows.
    """

    done: int
    total: int


Steps = Generator[Call | Pause | Advance, Any, T]
"""A conversation that returns a T."""


@dataclass(frozen=True)
class Retries:
    """The limits within which a client goes on asking.

    A repeated call has the key of the first, so it is answered with the first one's bytes, and
    never charged again.

    Attributes:
        attempts: calls in all, at least 1.
        first_pause, longest_pause: seconds. Pauses double from the first on. Each is a random share
            of that, so that clients which were turned away together do not come back together. A
            server's ``Retry-After`` is waited for, up to the longest pause.

    Example:
        >>> Retries(attempts=2).pause(3, "1.5") >= 1.5
        True
    """

    attempts: int = 6
    first_pause: float = 0.2
    longest_pause: float = 10.0

    def __post_init__(self) -> None:
        count(self.attempts, name="attempts")
        positive(self.first_pause, name="first_pause")
        positive(self.longest_pause, name="longest_pause")

    def pause(self, attempt: int, asked: str | None) -> float:
        """Return the seconds to wait after ``attempt`` failed, counted from 0.

        ``asked`` is the wait that the server asked for, or None.
        """
        own = min(self.longest_pause, self.first_pause * 2.0 ** min(attempt, 30))
        own *= random.uniform(0.5, 1.0)
        try:
            wanted = float(asked) if asked is not None else 0.0
        except ValueError:
            wanted = 0.0
        return max(own, min(wanted, self.longest_pause) if wanted > 0 else 0.0)


def persistent(call: Call, retries: Retries, *, hint: str = "") -> Steps[Reply]:
    """Return the reply to ``call``, which is repeated as it is while it may still succeed.

    Args:
        call: a call that is safe to repeat: it reads only, or has an idempotency key.
        retries: the limits of repetition.
        hint: advice for the caller if all attempts fail, at the end of the message.

    Raises:
        ServiceUnreachable: no attempt had a reply.
    """
    for attempt in range(retries.attempts):
        last = attempt + 1 == retries.attempts
        outcome: Reply | Lost = yield call
        if isinstance(outcome, Reply) and (outcome.status not in _RETRIED or last):
            return outcome
        if isinstance(outcome, Lost) and last:
            raise ServiceUnreachable(
                f"service: no reply to {call.method} {call.path} in {retries.attempts} "
                f"attempt(s), the last time: {outcome.reason}; expected a running service"
                f"{'; ' + hint if hint else ''}"
            )
        asked = outcome.headers.get("retry-after") if isinstance(outcome, Reply) else None
        yield Pause(retries.pause(attempt, asked))
    raise AssertionError("at least one attempt was made")


def error_of(status: int, problem: Any) -> ReticentError:
    """Return the error that a problem of RFC 9457 stands for, of the class with its code.

    Args:
        status: status of HTTP.
        problem: the parsed body, whatever it is.

    Example:
        >>> error_of(403, {"code": 12, "detail": "too much"})
        BudgetExceeded('too much')
    """
    values = problem if isinstance(problem, dict) else {}
    code, detail = values.get("code"), values.get("detail")
    text = detail if isinstance(detail, str) and detail else f"service: answered status {status}"
    known = _error_classes()
    kind = known.get(code) if type(code) is int else None
    if kind is None:
        kind = InvalidInput if 400 <= status < 500 else ServiceUnreachable
    return kind(text[:2000])


def _error_classes() -> dict[int, type[ReticentError]]:
    found: dict[int, type[ReticentError]] = {}
    left: list[type[ReticentError]] = [ReticentError]
    while left:
        kind = left.pop()
        found.setdefault(kind.code, kind)
        left += kind.__subclasses__()
    return found
