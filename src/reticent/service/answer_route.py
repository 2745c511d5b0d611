"""The busiest route, served without the layers that other routes share.

A request and its answer pass through `Edge` and this module only.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import Response

from reticent.core.arrow_bodies import ARROW
from reticent.core.errors import NotAuthenticated
from reticent.service.arrow import arrow_rows
from reticent.service.core import Service, check_role
from reticent.service.edge import JSON, media_type
from reticent.service.requests import checked_idempotency_key, checked_request_nonce, parsed

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_PATH = re.compile(r"/v1/bundles/([^/]+)/answers")


class AnswerRoute:
    """Serve `POST /v1/bundles/{id}/answers` as an ASGI application. `Edge` handles its errors.

    Args:
        service: the service of this worker.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    @staticmethod
    def takes(scope: Scope) -> bool:
        """Return whether a request is for this route."""
        return scope["method"] == "POST" and _PATH.fullmatch(scope["path"]) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["endpoint"] = answers
        path = _PATH.fullmatch(scope["path"])
        assert path is not None  # see takes
        response = await answers(self._service, path[1], scope, receive)
        await response(scope, receive, send)


async def answers(service: Service, bundle: str, scope: Scope, receive: Receive) -> Response:
    """Return one answer for each row of a request to ``bundle``, charged durably before it is
    drawn.

    Raises:
        ReticentError: there is no answer, and the error says why.
    """
    headers = Headers(scope=scope)
    key = await service.key_of(bearer(headers))
    fields = scope["state"].setdefault("fields", {})
    fields["key"] = key.id
    vouch(scope)
    check_role(key, "client")
    with service.admission.one_of(key.id):
        found = service.catalogue.find(bundle, may_ask=key.may_ask)
        found.check_open()
        name = checked_idempotency_key(headers.get("idempotency-key"))
        nonce = checked_request_nonce(headers.get("request-nonce"))
        most = found.most_rows(service.settings.most_rows)
        arrow = media_type(headers) == ARROW
        structure = None if arrow else found.structure(most)
        async with service.body(key, headers, receive, structure, (JSON, ARROW)) as content:
            if structure is None:
                read = partial(arrow_rows, bundle=found, most=most)
            else:
                read = partial(parsed, kind=found.asks, names=structure.names)
            answer = await service.answered(key, found, name, content, nonce=nonce, read=read)
    fields |= {"bundle": found.name, "rows": answer.rows, "repeated": answer.repeated}
    if not answer.repeated:
        service.metrics.rows(found.name, answer.rows)
    replayed = {"Idempotent-Replayed": "true" if answer.repeated else "false"}
    return Response(answer.body, media_type="application/json", headers=replayed)


def vouch(scope: Scope) -> None:
    """Tell a request's connection that its key is valid.

    A connection of another server than ours does not ask.
    """
    told = scope["state"].get("vouch")
    if told is not None:
        told()


def bearer(headers: Headers) -> str:
    """Return the secret that the header Authorization holds.

    Raises:
        NotAuthenticated: the header holds none.
    """
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise NotAuthenticated(
            "Authorization: expected a header `Bearer KEY` with a key of this service"
        )
    return secret.strip()
