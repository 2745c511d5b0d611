"""Logs of the service: one JSON object a line, of fields that hold no private value.

A line about a request has its random name, the name of its route, status, time, the key's
identifier and the number of rows. It never has the request's path, into which anybody may write
anything. Rows, subjects, bodies, headers and messages of errors are never passed to a logger.
Tracebacks, whose frames may show them, are cut to the places in the code.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from reticent.core.errors import LedgerUnavailable

NAME = "reticent.service"
_QUIET = ("sqlalchemy", "asyncio", "uvicorn.access", "multipart", "alembic")
"""Loggers of libraries whose finer messages show parameters or paths."""

_QUOTED = re.compile(r" \[.*\]", re.DOTALL)
"""What a database has said, which may quote names."""

logger = logging.getLogger(NAME)


class JsonLines(logging.Formatter):
    """Format a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger, event, and the record's own fields."""
        own = record.name.startswith((NAME, "uvicorn"))  # uvicorn tells of addresses and processes
        values: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            # Arguments of other libraries' messages may be anything; their texts are constants.
            "event": record.getMessage() if own or not record.args else str(record.msg),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            values |= fault(record.exc_info[1])
        return json.dumps(values, default=str)


def fault(error: BaseException) -> dict[str, Any]:
    """Return what may be said of an error: its class and where it was raised, without its message.

    For an unavailable ledger the reason is said too, without what a database has said.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = isinstance(error, LedgerUnavailable)
    return {
        "error": type(error).__name__,
        **({"reason": _QUOTED.sub("", str(error))} if own else {}),
        "at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def configure(level: str) -> None:
    """Send everything that this process logs to standard error, as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error"):
        found = logging.getLogger(name)
        found.handlers.clear()
        found.propagate = True


def say(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log ``event`` with ``fields``, none of which may be private."""
    logger.log(level, event, extra={"fields": fields})
