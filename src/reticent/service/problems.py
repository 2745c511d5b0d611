"""Errors as RFC 9457 problems: one shape, and a type that is the error class's code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reticent.core import errors
from reticent.core.errors import ReticentError

CONTENT_TYPE = "application/problem+json"
TYPE = "urn:reticent:error:"
"""What every problem type begins with; the code of the error class follows."""

INTERNAL = 70
"""Code of a fault of the server, as of the command line."""

_RETRY = 1
"""Seconds after which a busy service may be asked again."""

_NO_LEDGER = (
    "the ledger cannot be charged now, and nothing is released without it; whoever runs the "
    "service finds the reason in the log. Repeat the request later, with the same Idempotency-Key"
)

_STATUS: tuple[tuple[type[ReticentError], int], ...] = (
    (errors.NotAuthenticated, 401),
    (errors.NotPermitted, 403),
    (errors.BudgetExceeded, 403),
    (errors.IncompatibleGuarantees, 403),
    (errors.UnknownName, 404),
    (errors.RequestUnderWay, 409),
    (errors.AnswerLost, 410),
    (errors.ServiceBusy, 429),
    (errors.LedgerUnavailable, 503),
    (errors.CorruptLedger, 503),
    (errors.InvalidInput, 422),
)
"""Statuses of error classes, subclasses before their parents; what is not here is a fault."""


class RequestRefused(errors.InvalidInput):
    """A request for which HTTP has another status than 422: its method, length or encoding.

    Args:
        status: status of the response.
        message: text that says what was expected.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Problem:
    """An error as a response.

    Attributes:
        title: name of the error class.
        code: code of the class.
        status: status of the response.
        detail: text that says what was expected, what was got, what to do.
    """

    title: str
    code: int
    status: int
    detail: str

    @classmethod
    def of(cls, error: BaseException) -> Problem:
        """Return the problem for an error. It has no text of a fault or of the ledger's errors.

        Example:
            >>> problem = Problem.of(errors.BudgetExceeded("left epsilon=0"))
            >>> problem.status, problem.code, Problem.of(KeyError("secret")).detail[:16]
            (403, 12, 'internal error: ')
        """
        if isinstance(error, RequestRefused):
            return cls("InvalidInput", error.code, error.status, str(error))
        for kind, status in _STATUS:
            if isinstance(error, kind):
                # Why the ledger fails, where it is and what to do about it is its owner's matter.
                told = _NO_LEDGER if status == 503 else str(error)
                return cls(type(error).__name__, error.code, status, told)
        return cls(
            "InternalError",
            INTERNAL,
            500,
            "internal error: nothing more is said here; whoever runs the service finds it in the "
            "log, under the name of the request. Repeat it with the same Idempotency-Key",
        )

    def body(self, request: str) -> bytes:
        """Return the problem as JSON.

        Args:
            request: name of the request in the log.
        """
        values: dict[str, Any] = {
            "type": f"{TYPE}{self.code}",
            "title": self.title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "request": request,
        }
        return json.dumps(values, separators=(",", ":")).encode()

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that go with the status."""
        if self.status == 401:
            return {"WWW-Authenticate": 'Bearer realm="reticent"'}
        return {"Retry-After": str(_RETRY)} if self.status in (409, 429, 503) else {}
