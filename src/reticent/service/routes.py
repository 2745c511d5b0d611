"""The routes. Each checks who asks, hands the work to a thread, and says what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request
from starlette.responses import StreamingResponse

from reticent.core.errors import InvalidInput, NotAuthenticated
from reticent.service import answer_route, documents
from reticent.service.budgets import visible_budgets
from reticent.service.core import Service, check_role
from reticent.service.dashboard.routes import HEADERS as PAGE_HEADERS
from reticent.service.documents import takes
from reticent.service.keys import ApiKey
from reticent.service.requests import Answers, Predictions, Preview, parsed
from reticent.service.structure import MOST_CELLS, Structure

_bearer = HTTPBearer(auto_error=False, description="A key that `reticent keys create` has made.")


async def service_of(request: Request) -> Service:
    """Return the service of this worker."""
    found: Service = request.app.state.service
    return found


async def authenticated(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> ApiKey:
    """Return the key that the request names.

    Raises:
        NotAuthenticated: the request names no valid key.
    """
    if credentials is None:
        raise NotAuthenticated(
            "Authorization: expected a header `Bearer KEY` with a key of this service"
        )
    service = await service_of(request)
    key = await service.key_of(credentials.credentials)
    note(request, key=key.id)
    answer_route.vouch(request.scope)
    return key


def note(request: Request, **fields: Any) -> None:
    """Add fields to the request's line in the log, none of them private."""
    request.scope["state"].setdefault("fields", {}).update(fields)


Key = Annotated[ApiKey, Depends(authenticated)]
Held = Annotated[Service, Depends(service_of)]
Narrowed = Annotated[str | None, Query(max_length=400)]

_PART = 2**16
"""Bytes of a file that are sent at once."""

_FRONT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>reticent</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><h1>reticent</h1>
<p>This service answers from private data, and charges each answer to a budget.</p>
<ul><li><a href="/dashboard">Pages for the owner</a></li>
<li><a href="/openapi.json">The interface, for programs</a></li>
<li><a href="/healthz">Whether it can answer now</a></li></ul></body></html>
"""

open_routes = APIRouter(responses=documents.PROBLEM)
routes = APIRouter(prefix="/v1", responses=documents.PROBLEM)


@open_routes.get("/healthz")
async def health(service: Held) -> documents.Health:
    """Answer whether the ledger can be charged, as of a second ago at most."""
    await service.check_chargeable()
    return documents.Health(status="ok")


@open_routes.get("/", include_in_schema=False)
async def front(request: Request) -> Response:
    """Say what this is, to whoever opens its address in a browser."""
    return Response(_FRONT, media_type="text/html; charset=utf-8", headers=PAGE_HEADERS)


@open_routes.get("/openapi.json", include_in_schema=False)
async def document(request: Request) -> Response:
    """Return the document of this interface, written once."""
    held = request.app.state
    if not hasattr(held, "document"):
        held.document = json.dumps(request.app.openapi(), separators=(",", ":")).encode()
    return Response(held.document, media_type="application/json")


@open_routes.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, service: Held) -> Response:
    """Return counts and times in Prometheus form, for an owner's key or the one for metrics
    alone.
    """
    secret = answer_route.bearer(request.headers)
    if not service.opens_metrics(secret):
        check_role(await service.key_of(secret), "owner")
    answer_route.vouch(request.scope)
    page, kind = service.metrics.page()
    return Response(page, media_type=kind)


@routes.get("/bundles")
def bundles(service: Held, key: Key) -> documents.BundleList:
    """List the bundles that the key may ask."""
    found = [
        bundle.describe(most_rows=service.settings.most_rows)
        for bundle in service.catalogue
        if key.may_ask(bundle.identity, bundle.name)
    ]
    return documents.BundleList.model_validate({"bundles": found})


@routes.get("/bundles/{bundle}/card")
def card(service: Held, key: Key, bundle: str) -> documents.Card:
    """Return the guarantee in plain words."""
    found = service.catalogue.find(bundle, may_ask=key.may_ask)
    shown = found.card()
    return documents.Card(bundle=found.identity, card=shown.to_dict(), markdown=shown.to_markdown())


@routes.get(
    "/bundles/{bundle}/files/{name}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def file(service: Held, key: Key, bundle: str, name: str) -> Response:
    """Send a file of a bundle that holds no private record, for a device that checks it itself."""
    path = service.catalogue.find(bundle, may_ask=key.may_ask).file(name)
    headers = {"Content-Length": str(path.stat().st_size)}
    return StreamingResponse(_parts(path), media_type="application/octet-stream", headers=headers)


@routes.post("/bundles/{bundle}/preview", openapi_extra=takes(Preview))
async def preview(request: Request, service: Held, key: Key, bundle: str) -> documents.Cost:
    """Return what a request would cost, without its rows. It is free."""
    with service.admission.one_of(key.id):
        found = service.catalogue.find(bundle, may_ask=key.may_ask)
        most = service.settings.most_rows
        structure = Structure(lists=1, items=most + 2)
        async with service.body(key, request.headers, request.receive, structure) as content:
            told = await service.run(service.previewed, key, found, content, structure.names)
    return documents.Cost.model_validate(told)


@routes.post(
    "/bundles/{bundle}/answers",
    response_class=Response,
    openapi_extra=takes(Answers),
    responses={
        200: {
            "model": documents.AnswerList,
            "headers": {"Idempotent-Replayed": {"schema": {"enum": ["true", "false"]}}},
        }
    },
)
async def answers(
    request: Request,
    service: Held,
    key: Key,
    bundle: str,
    idempotency_key: Annotated[
        str, Header(description="8 to 128 characters; repeat it to repeat the request.")
    ],
    request_nonce: Annotated[
        str | None,
        Header(description="32 hexadecimal digits that key the receipt's digest of the request."),
    ] = None,
) -> Response:
    """Return one answer for each row, charged durably before it is drawn."""
    return await answer_route.answers(service, bundle, request.scope, request.receive)


@routes.get("/budget")
def budget(
    service: Held, key: Key, subject: Narrowed = None, bundle: Narrowed = None
) -> documents.BudgetList:
    """Return the budgets that the key's requests count against, or all for an owner."""
    found = visible_budgets(service.ledger.store, key, subject=subject, bundle=bundle)
    return documents.BudgetList.model_validate({"principal": key.principal, "budgets": found})


@routes.get("/receipts/{identifier}")
def receipt(service: Held, key: Key, identifier: str) -> documents.SignedReceipt:
    """Return the signed receipt of an answer that this client got."""
    found = service.answering.receipt(key.principal, identifier)
    return documents.SignedReceipt.model_validate(found)


@routes.get("/anchor")
def anchor(service: Held, key: Key) -> documents.SignedAnchor:
    """Return the ledger's last position, signed.

    Whoever keeps it can tell later whether the ledger was taken back.
    """
    return documents.SignedAnchor.model_validate(service.anchored())


def _parts(path: Path) -> Iterator[bytes]:
    """Yield a file in parts. However many ask for it, little of it is in memory."""
    with path.open("rb") as opened:
        while part := opened.read(_PART):
            yield part


@routes.get("/models")
def models(service: Held, key: Key) -> documents.ModelList:
    """List the models that were trained on released values."""
    found = [model.describe() for model in service.shelf if key.may_ask(model.identity, model.name)]
    return documents.ModelList.model_validate({"models": found})


@routes.post("/models/{model}/predictions", openapi_extra=takes(Predictions))
async def predictions(
    request: Request, service: Held, key: Key, model: str
) -> documents.PredictionList:
    """Return predictions for released values. They are free, since they are post-processing."""
    check_role(key, "client")
    with service.admission.one_of(key.id):
        found = service.shelf.find(model, may_ask=key.may_ask)
        most = service.settings.most_rows
        structure = Structure(lists=most + 2, items=MOST_CELLS)
        async with service.body(key, request.headers, request.receive, structure) as content:

            def work() -> list[Any]:
                values = parsed(content, Predictions, names=structure.names).values
                if len(values) > most:
                    raise InvalidInput(f"values: expected at most {most}, got {len(values)}")
                return found.predictions(values)

            told = await service.run(work)
    return documents.PredictionList(
        model=found.identity, bundle=found.released_by, predictions=told
    )
