"""The document says what the service does: schemathesis asks whatever it allows, and more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.service.conftest import Place

SHAPE = {"type", "title", "status", "code", "detail", "request"}
OPERATIONS = 12
SOAK = (pytest.mark.soak, pytest.mark.timeout(4 * 3600))


def check_problem(told: httpx.Response) -> None:
    """One shape, whatever is wrong; and never a fault of the server."""
    assert told.status_code < 500, told.text
    if told.status_code >= 400:
        assert told.headers["Content-Type"] == "application/problem+json"
        assert set(told.json()) == SHAPE
        assert told.json()["status"] == told.status_code
        assert told.json()["type"] == f"urn:reticent:error:{told.json()['code']}"


@pytest.mark.parametrize("examples", [5, pytest.param(400, marks=SOAK)])
def test_whatever_the_document_allows_is_answered_as_it_says(
    place: Place, serve_here: Callable[..., httpx.Client], examples: int
) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    client = serve_here(place.settings(per_key=1000))
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    checks = schemathesis.checks.CHECKS.get_by_names(
        [
            "not_a_server_error",
            "status_code_conformance",
            "content_type_conformance",
            "response_schema_conformance",
        ]
    )
    asked = 0
    for result in schema.get_all_operations():
        operation = result.ok()

        @seed(0)
        @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            for secret in (place.secret, place.owner):
                response = case.call(
                    base_url=str(client.base_url), headers={"Authorization": f"Bearer {secret}"}
                )
                case.validate_response(response, checks=checks)

        ask()
        asked += 1
    assert asked == OPERATIONS


@pytest.mark.parametrize("examples", [40, pytest.param(4000, marks=SOAK)])
def test_whatever_is_sent_there_is_one_shape_of_error(
    place: Place, serve_here: Callable[..., httpx.Client], examples: int
) -> None:
    client = serve_here(place.settings(), place.secret)
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
    rows = st.lists(st.lists(values, max_size=3), max_size=3)
    bodies = st.one_of(
        st.binary().map(lambda content: {"content": content}),
        values.map(lambda value: {"json": value}),
        st.fixed_dictionaries(
            {"rows": rows}, optional={"subject": values, "subjects": values, "columns": values}
        ).map(lambda value: {"json": value}),
    )
    paths = st.sampled_from(["labels", "curated", "rows", "free"]) | st.text(min_size=1)

    @seed(0)
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(bundle=paths, body=bodies, name=st.text("abc-", max_size=12), method=st.booleans())
    def ask(bundle: str, body: dict[str, Any], name: str, method: bool) -> None:
        try:
            request = client.build_request(
                "POST" if method else "PUT",
                httpx.URL(path=f"/v1/bundles/{bundle}/answers"),
                headers={"Idempotency-Key": name, "Content-Type": "application/json"},
                **body,
            )
        except (UnicodeError, ValueError, httpx.InvalidURL):
            return  # nothing that can be sent
        check_problem(client.send(request))

    ask()
