"""The pages: sign-in, overview, budgets, entries, bundles, keys, verification."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import parse_qs, urlencode

from fastapi import APIRouter, Query
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from reticent.core.errors import InvalidInput, NotAuthenticated, NotPermitted, ReticentError
from reticent.core.scopes import Scope
from reticent.ledger.charges import delta_value, epsilon_value
from reticent.plots.spending import amount, spending_chart
from reticent.service.catalogue import ServedBundle
from reticent.service.core import Service
from reticent.service.dashboard import numbers
from reticent.service.dashboard.sessions import COOKIE, LASTS, Sessions
from reticent.service.dashboard.views import budget_bars, last_entries, problem_of, what
from reticent.service.keys import ApiKey
from reticent.service.problems import Problem

PREFIX = "/dashboard"
"""Where the pages begin."""

POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""What a browser may load for a page: its style sheet and nothing else; no script at all."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

REFRESHES = (30,)
"""Seconds after which a page may be asked to load itself again."""

_FEW_BUDGETS, _FEW_ENTRIES, _PAGE = 6, 8, 50
_LARGEST_FORM = 2048
_MOST_VERIFIED = 200_000
"""Entries that a page recomputes at most; a longer chain is verified by the command."""

_ROUTES = {
    "answers": "Rows are sent here, and every answer is charged.",
    "device": "Rows stay on the device, which releases them itself; only released values are sent.",
    "free": "Its predictions were paid for when it was fitted.",
}

router = APIRouter(prefix=PREFIX, include_in_schema=False)


@router.get("/style.css")
def style() -> Response:
    """Send the style sheet of the demonstrations' pages, and what these add to it."""
    return Response(
        _style(),
        media_type="text/css",
        headers={"Cache-Control": "max-age=300", "Cross-Origin-Resource-Policy": "same-origin"},
    )


@router.get("/sign-in")
def sign_in(request: Request) -> Response:
    """Show a form for an owner's key."""
    if _viewer(request) is not None:
        return RedirectResponse(PREFIX, status_code=303)
    return _page(request, "sign_in.html", None, problem="")


@router.post("/sign-in")
async def signed_in(request: Request) -> Response:
    """Set a cookie for a key and show the overview, or show the form again."""
    try:
        _check_origin(request)
        secret = (await _form(request)).get("key", "").strip()
        _, cookie = await run_in_threadpool(_sessions(request).begin, secret)
    except (NotAuthenticated, NotPermitted, InvalidInput) as error:
        told = (
            "This is no key that is valid now. Make one with `reticent keys create --role owner`."
            if isinstance(error, NotAuthenticated)
            else "This is a client's key. These pages are for owners: "
            "`reticent keys create --role owner` makes a key for them."
            if isinstance(error, NotPermitted)
            else "The form could not be read. Open this page again, and sign in from it."
        )
        return _page(request, "sign_in.html", None, status=Problem.of(error).status, problem=told)
    response = RedirectResponse(PREFIX, status_code=303)
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=LASTS,
        path=PREFIX,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.post("/sign-out")
def signed_out(request: Request) -> Response:
    """Show the form again, and delete the cookie."""
    _check_origin(request)
    response = RedirectResponse(f"{PREFIX}/sign-in", status_code=303)
    response.delete_cookie(COOKIE, path=PREFIX, httponly=True, samesite="strict")
    return response


@router.get("")
def overview(request: Request) -> Response:
    """Show how everything stands, on one page."""

    def show(service: Service, key: ApiKey) -> Response:
        report = service.ledger.report(limit=_FEW_BUDGETS)
        listed = service.keys.list()
        now = time.time()
        return _page(
            request,
            "overview.html",
            key,
            report=report,
            bars=budget_bars(report.budgets[:_FEW_BUDGETS], service.catalogue),
            chart=spending_chart(service.ledger.spending(points=120)),
            entries=last_entries(service.ledger.store, most=_FEW_ENTRIES),
            problem=problem_of(service.ledger),
            keys=len(listed),
            valid=sum(one.state(now) == "valid" for one in listed),
        )

    return _shown(request, show)


@router.get("/bundles/{bundle}")
def card(request: Request, bundle: str) -> Response:
    """Show what a bundle guarantees, in plain words."""

    def show(service: Service, key: ApiKey) -> Response:
        found = service.catalogue.find(bundle, may_ask=lambda *names: True)
        return _page(request, "bundle.html", key, bundle=found)

    return _shown(request, show)


@router.get("/budgets")
def all_budgets(
    request: Request,
    subject: Annotated[str, Query(max_length=200)] = "",
    client: Annotated[str, Query(max_length=200)] = "",
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    """Show every budget, the tightest first."""

    def show(service: Service, key: ApiKey) -> Response:
        scope = Scope(principal=client, subject=subject) if subject or client else None
        report = service.ledger.report(scope, limit=_PAGE)
        shown = report.budgets[(page - 1) * _PAGE : page * _PAGE]
        named = {"subject": subject, "client": client}
        query = urlencode({name: value for name, value in named.items() if value})
        return _page(
            request,
            "budgets.html",
            key,
            bars=budget_bars(shown, service.catalogue),
            total=len(report.budgets),
            subject=subject,
            client=client,
            page=page,
            pages=max(1, -(-len(report.budgets) // _PAGE)),
            query=f"{query}&" if query else "",
            chart=spending_chart(service.ledger.spending(scope, points=120)),
        )

    return _shown(request, show)


@router.get("/entries")
def all_entries(
    request: Request,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    receipt: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Show entries of the ledger, newest first."""

    def show(service: Service, key: ApiKey) -> Response:
        found = last_entries(
            service.ledger.store, most=_PAGE, before=before, receipt=receipt.strip()
        )
        older = found[-1].seq if len(found) == _PAGE else None
        return _page(
            request, "entries.html", key, entries=found, older=older, before=before, receipt=receipt
        )

    return _shown(request, show)


@router.get("/keys")
def all_keys(request: Request) -> Response:
    """Show who may ask, and for what. No key is shown, since none is kept."""

    def show(service: Service, key: ApiKey) -> Response:
        return _page(
            request, "keys.html", key, keys=service.keys.list(), now=time.time(), own=key.id
        )

    return _shown(request, show)


@router.get("/verification")
def verification(request: Request) -> Response:
    """Show the chain and every total, recomputed now."""

    def show(service: Service, key: ApiKey) -> Response:
        report = service.ledger.report(limit=1)
        found = service.ledger.verify() if report.entries <= _MOST_VERIFIED else None
        return _page(
            request,
            "verification.html",
            key,
            report=report,
            problem=problem_of(service.ledger),
            found=found,
            most=_MOST_VERIFIED,
            trusted=service.settings.trusted_key is not None,
        )

    return _shown(request, show)


def _shown(request: Request, show: Callable[[Service, ApiKey], Response]) -> Response:
    """Return a page for whoever is signed in, and the form for everybody else."""
    key = _viewer(request)
    if key is None:
        return RedirectResponse(f"{PREFIX}/sign-in", status_code=303)
    service: Service = request.app.state.service
    try:
        return show(service, key)
    except ReticentError as error:
        status = Problem.of(error).status
        return _page(request, "problem.html", key, status=status, told=str(error))


def _page(
    request: Request, template: str, key: ApiKey | None, *, status: int = 200, **values: Any
) -> Response:
    asked = request.query_params.get("refresh", "")
    served = sorted(request.app.state.service.catalogue, key=lambda bundle: bundle.name)
    refresh = int(asked) if asked in map(str, REFRESHES) and key is not None else None
    content = (
        _templates()
        .get_template(template)
        .render(
            root=PREFIX,
            path=request.url.path,
            viewer=key,
            bundles=served,
            names={bundle.identity: bundle.name for bundle in served},
            refresh=refresh,
            every=REFRESHES[0],
            as_of=numbers.moment(int(time.time() * 1e6)),
            **values,
        )
    )
    return HTMLResponse(content, status_code=status, headers=HEADERS)


def _viewer(request: Request) -> ApiKey | None:
    return _sessions(request).viewer(request.cookies.get(COOKIE))


def _sessions(request: Request) -> Sessions:
    service: Service = request.app.state.service
    return Sessions(service.signer.secret, service.keys)


def _check_origin(request: Request) -> None:
    """Refuse forms of other sites.

    Browsers say where a form stands. A client that says nothing is no browser.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin", "null")
    here = request.headers.get("host", "")
    # A page that sends no referrer may send the origin "null" for its own form.
    if site != "same-origin" or (origin != "null" and origin.partition("://")[2] != here):
        raise InvalidInput("form: expected one of this service")


async def _form(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _LARGEST_FORM:
            raise InvalidInput(f"form: expected at most {_LARGEST_FORM} bytes")
    if kind != "application/x-www-form-urlencoded":
        raise InvalidInput("form: expected one of this service")
    try:
        fields = parse_qs(content.decode("ascii"), max_num_fields=4)
    except ValueError as error:
        raise InvalidInput("form: expected one of this service") from error
    return {name: values[0] for name, values in fields.items()}


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("reticent.service.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., object]] = {
        "amount": amount,
        "whole": numbers.whole,
        "answers_left": numbers.answers_left,
        "moment": numbers.moment,
        "epsilon": lambda units: amount(epsilon_value(units)),
        "delta": lambda units: amount(delta_value(units)),
        "what": what,
        "about": _about,
        "signed": _signed,
    }
    environment.filters |= filters
    return environment


def _about(bundle: ServedBundle) -> str:
    signed = "signed" if _signed(bundle) else "not signed"
    return f"{_ROUTES[bundle.route]} {type(bundle.system).__name__}, {signed}."


def _signed(bundle: ServedBundle) -> bool:
    return (bundle.folder / "signature.json").is_file()


@cache
def _style() -> str:
    shared = files("reticent.pages").joinpath("style.css").read_text(encoding="utf-8")
    own = files("reticent.service.dashboard").joinpath("style.css").read_text(encoding="utf-8")
    return f"{shared}\n{own}"
