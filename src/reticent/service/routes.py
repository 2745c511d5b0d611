"""The routes: each checks who asks, hands the work to a thread, and says what came of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request

from reticent.core.errors import InvalidInput, NotAuthenticated
from reticent.service import answer_route, documents
from reticent.service.budgets import visible_budgets
from reticent.service.core import Service, check_role
from reticent.service.documents import takes
from reticent.service.edge import read_body
from reticent.service.keys import ApiKey
from reticent.service.requests import Answers, Predictions, Preview, parsed

_bearer = HTTPBearer(auto_error=False, description="A key that `reticent keys create` has made.")


async def service_of(request: Request) -> Service:
    """What this worker holds."""
    found: Service = request.app.state.service
    return found


async def authenticated(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> ApiKey:
    """The key that the request names.

    Raises:
        NotAuthenticated: none, or none that is valid.
    """
    if credentials is None:
        raise NotAuthenticated(
            "Authorization: expected a header `Bearer KEY` with a key of this service"
        )
    service = await service_of(request)
    key = await service.key_of(credentials.credentials)
    note(request, key=key.id)
    return key


def note(request: Request, **fields: Any) -> None:
    """Adds fields to the request's line in the log; none of them private."""
    request.scope["state"].setdefault("fields", {}).update(fields)


Key = Annotated[ApiKey, Depends(authenticated)]
Held = Annotated[Service, Depends(service_of)]
Narrowed = Annotated[str | None, Query(max_length=400)]

open_routes = APIRouter(responses=documents.PROBLEM)
routes = APIRouter(prefix="/v1", responses=documents.PROBLEM)


@open_routes.get("/healthz")
def health(service: Held) -> documents.Health:
    """Whether the ledger can be read."""
    service.ledger.anchor()
    return documents.Health(status="ok")


@open_routes.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(service: Held, key: Key) -> Response:
    """Counts and times in Prometheus form, for an owner's key."""
    check_role(key, "owner")
    page, kind = service.metrics.page()
    return Response(page, media_type=kind)


@routes.get("/bundles")
def bundles(service: Held, key: Key) -> documents.BundleList:
    """The bundles that the key may ask."""
    found = [
        bundle.describe(most_rows=service.settings.most_rows)
        for bundle in service.catalogue
        if key.may_ask(bundle.identity, bundle.name)
    ]
    return documents.BundleList.model_validate({"bundles": found})


@routes.get("/bundles/{bundle}/card")
def card(service: Held, key: Key, bundle: str) -> documents.Card:
    """The guarantee in plain words."""
    found = service.catalogue.find(bundle, may_ask=key.may_ask)
    shown = found.card()
    return documents.Card(bundle=found.identity, card=shown.to_dict(), markdown=shown.to_markdown())


@routes.get(
    "/bundles/{bundle}/files/{name}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def file(service: Held, key: Key, bundle: str, name: str) -> Response:
    """A file of a bundle that holds no private record, for a device that checks it itself."""
    content = service.catalogue.find(bundle, may_ask=key.may_ask).file(name)
    return Response(content, media_type="application/octet-stream")


@routes.post("/bundles/{bundle}/preview", openapi_extra=takes(Preview))
async def preview(request: Request, service: Held, key: Key, bundle: str) -> documents.Cost:
    """What a request would cost, without its rows; free."""
    with service.admission.one_of(key.id):
        found = service.catalogue.find(bundle, may_ask=key.may_ask)
        content = await _content(request, service)
        told = await service.run(service.previewed, key, found, content)
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
    """One answer for each row, charged durably before it is drawn."""
    return await answer_route.answers(service, bundle, request.scope, request.receive)


@routes.get("/budget")
def budget(
    service: Held, key: Key, subject: Narrowed = None, bundle: Narrowed = None
) -> documents.BudgetList:
    """The budgets that the key's requests count against; for an owner all."""
    found = visible_budgets(service.ledger.store, key, subject=subject, bundle=bundle)
    return documents.BudgetList.model_validate({"principal": key.principal, "budgets": found})


@routes.get("/receipts/{identifier}")
def receipt(service: Held, key: Key, identifier: str) -> documents.SignedReceipt:
    """The signed receipt of an answer that this client got."""
    found = service.answering.receipt(key.principal, identifier)
    return documents.SignedReceipt.model_validate(found)


@routes.get("/anchor")
def anchor(service: Held, key: Key) -> documents.SignedAnchor:
    """The ledger's last position, signed: whoever keeps it can tell later whether it was taken
    back.
    """
    return documents.SignedAnchor.model_validate(service.anchored())


@routes.get("/models")
def models(service: Held, key: Key) -> documents.ModelList:
    """Models that were trained on released values."""
    found = [model.describe() for model in service.shelf if key.may_ask(model.identity, model.name)]
    return documents.ModelList.model_validate({"models": found})


@routes.post("/models/{model}/predictions", openapi_extra=takes(Predictions))
async def predictions(
    request: Request, service: Held, key: Key, model: str
) -> documents.PredictionList:
    """Predictions for released values; free, since they are post-processing."""
    check_role(key, "client")
    with service.admission.one_of(key.id):
        found = service.shelf.find(model, may_ask=key.may_ask)
        content = await _content(request, service)

        def work() -> list[Any]:
            values = parsed(content, Predictions).values
            if len(values) > service.settings.most_rows:
                raise InvalidInput(
                    f"values: expected at most {service.settings.most_rows}, got {len(values)}"
                )
            return found.predictions(values)

        told = await service.run(work)
    return documents.PredictionList(
        model=found.identity, bundle=found.released_by, predictions=told
    )


async def _content(request: Request, service: Service) -> bytes:
    settings = service.settings
    headers, receive = request.headers, request.receive
    return await read_body(headers, receive, most=settings.most_bytes, seconds=settings.deadline)
