"""The start of the service: one process, or several that are spawned."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from reticent.core.extras import require
from reticent.service.edge import LONGEST_HEAD
from reticent.service.logs import configure
from reticent.service.metrics import FOLDER_VARIABLE
from reticent.service.settings import Listening, Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_HANDED_OVER = "RETICENT_SERVICE_SETTINGS"
"""Environment variable by which workers get their settings; a command line would show a password
to every user of the machine."""

_TURN = 0.001
"""Seconds for which a thread may keep others from running: a request too many is refused by one
thread while another computes."""

_GARBAGE = 10_000
"""New objects after which Python looks for cycles; a request makes hundreds, and leaves none."""

_PATIENCE = 30
"""Seconds that a stop waits for requests under way."""


def serve(settings: Settings) -> None:
    """Answer until told to stop (SIGTERM, SIGINT), then finish what is under way.

    Raises:
        MissingExtra: the extra ``service`` is not installed.
        Others: the errors of ``create_app``, before anything listens.
    """
    uvicorn, options = listening(settings)
    if settings.workers == 1:
        from reticent.service.app import create_app

        uvicorn.run(_lasting(create_app(settings)), **options)
        return
    _try_out(settings)
    with tempfile.TemporaryDirectory(prefix="reticent-metrics-") as counts:
        os.environ[FOLDER_VARIABLE] = counts
        os.environ[_HANDED_OVER] = settings.model_dump_json()
        # uvicorn spawns its workers: a forked one would share connections and locks.
        uvicorn.run(
            "reticent.service.server:worker", factory=True, workers=settings.workers, **options
        )


def listening(settings: Listening) -> tuple[Any, dict[str, Any]]:
    """Prepare this process to serve, and return the server's module and its options.

    Raises:
        InvalidInput: an address that needs a proxy, or too few descriptors.
        MissingExtra: the extra ``service`` is not installed.
    """
    require("fastapi", extra="service")
    require("prometheus_client", extra="service")
    uvicorn = require("uvicorn", extra="service")
    from reticent.service.connections import Door, check_descriptors

    settings.check_listening()
    check_descriptors(settings.connections)
    configure(settings.level)
    sys.setswitchinterval(_TURN)
    return uvicorn, {
        "host": settings.host,
        "port": settings.port,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": _PATIENCE,
        "http": Door.of(settings),
        "h11_max_incomplete_event_size": LONGEST_HEAD,
        "loop": "asyncio",
        "ws": "none",
    }


def worker() -> ASGIApp:
    """Return the application of a spawned worker, from what ``serve`` handed over."""
    from reticent.service.app import create_app
    from reticent.service.connections import check_descriptors

    settings = Settings.model_validate_json(os.environ[_HANDED_OVER])
    check_descriptors(settings.connections)
    configure(settings.level)
    sys.setswitchinterval(_TURN)
    return _lasting(create_app(settings))


def _lasting(app: ASGIApp) -> ASGIApp:
    """Return an application whose parts no collection of garbage looks through again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    return app


def _try_out(settings: Settings) -> None:
    """Raise here, once, what every worker would raise again and again."""
    from reticent.service.core import Service

    Service(settings).close()
