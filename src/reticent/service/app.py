"""The service as an ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from reticent.core.errors import InvalidInput, ReticentError, UnknownName
from reticent.service.answer_route import AnswerRoute
from reticent.service.core import Service
from reticent.service.dashboard.routes import router as pages
from reticent.service.documents import ProblemBody
from reticent.service.edge import Edge
from reticent.service.logs import fault, say
from reticent.service.problems import CONTENT_TYPE, Problem, RequestRefused
from reticent.service.routes import open_routes, routes
from reticent.service.settings import Settings
from reticent.version import __version__

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_WITNESSED = 60.0
"""Seconds after which the ledger is looked at again, for the log."""


def create_app(settings: Settings) -> ASGIApp:
    """Return the application of one worker, ready to answer.

    Args:
        settings: the service's ``Settings``.

    Returns:
        An ASGI application. Its shutdown finishes what is under way.

    Raises:
        InvalidInput, CorruptBundle, UntrustedSignature: a bundle or a key cannot be used.
        LedgerUnavailable: there is no ledger, or it is older than its anchor.
        MissingExtra: the extra ``service`` is not installed.
    """
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        witness = asyncio.create_task(_witness(service))
        say("started", bundles=[bundle.name for bundle in service.catalogue])
        yield
        witness.cancel()
        with suppress(asyncio.CancelledError):
            await witness
        await asyncio.to_thread(service.close)
        say("stopped")

    app = FastAPI(
        title="reticent",
        version=__version__,
        summary="Answers from private data, each charged to a budget before it is drawn.",
        openapi_url=None,  # see routes
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.service = service
    app.include_router(open_routes)
    app.include_router(routes)
    app.include_router(pages)
    app.add_middleware(Edge, admission=service.admission, metrics=service.metrics)
    app.add_exception_handler(ReticentError, _refused)
    app.add_exception_handler(RequestValidationError, _refused)
    app.add_exception_handler(HTTPException, _refused)
    _document_problems(app)
    asked = Edge(AnswerRoute(service), admission=service.admission, metrics=service.metrics)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        takes = scope["type"] == "http" and AnswerRoute.takes(scope)
        await (asked if takes else app)(scope, receive, send)

    return application


async def _refused(request: Request, error: Exception) -> Response:
    headers: dict[str, str] = {}
    if isinstance(error, RequestValidationError):
        error = InvalidInput(f"request: {_places(error)}; see /openapi.json")
    elif isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        if error.status_code == 404:
            error = UnknownName("path: expected one of those in /openapi.json")
        else:
            error = RequestRefused(
                error.status_code, "method: expected one that /openapi.json lists for this path"
            )
    problem = Problem.of(error)
    if problem.status >= 500:
        raise error  # the outermost layer logs and answers it
    name = request.scope["state"]["request"]
    return Response(
        problem.body(name),
        status_code=problem.status,
        media_type=CONTENT_TYPE,
        headers={**headers, **problem.headers},
    )


def _places(error: RequestValidationError) -> str:
    """Name the parameters that are wrong, and never their values."""
    parts = error.errors()
    return "; ".join(f"{'.'.join(map(str, part['loc']))}: {part['type']}" for part in parts[:3])


def _document_problems(app: FastAPI) -> None:
    """Add the one shape of errors to the document. Routes refer to it by name."""
    make = app.openapi

    def document() -> dict[str, object]:
        found = make()
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        schemas["ProblemBody"] = ProblemBody.model_json_schema()
        return found

    app.openapi = document  # type: ignore[method-assign]


async def _witness(service: Service) -> None:
    """Log a signed anchor within a minute of each change.

    Logs are kept elsewhere, and outlive a rollback.
    """
    said = None
    while True:
        try:
            told = await asyncio.to_thread(service.anchored)
            if told["anchor"]["digest"] != said:
                say("anchor", **told)
                said = told["anchor"]["digest"]
        except ReticentError as error:
            say("ledger unavailable", level=logging.ERROR, **fault(error))
            said = None
        await asyncio.sleep(_WITNESSED)
