"""What a session believes of a server that lies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reticent.client.sessions import Session
from reticent.client.steps import Reply, Retries
from reticent.core import AddRemove, Guarantee
from reticent.core.errors import UnknownName

GOOD, WEAK = "a" * 64, "b" * 64


def entry(identity: str, name: str) -> dict[str, Any]:
    return {
        **{"id": identity, "name": name, "system": "S", "protects": "input", "route": "device"},
        **{"subject": None, "features": 2, "columns": [], "most_rows": 10, "signed": True},
        **{"files": [], "guarantee": Guarantee(1.0, 0.0, AddRemove()).to_dict()},
    }


def offered(bundle: str, entries: list[dict[str, Any]]) -> str:
    session = Session(
        "http://127.0.0.1:1", "key-of-a-test", trusted_key=None, retries=Retries(), insecure=False
    )
    steps = session.offer(bundle)
    next(steps)
    try:
        steps.send(Reply(200, {}, json.dumps({"bundles": entries}).encode()))
    except StopIteration as done:
        return str(done.value.id)
    raise AssertionError("expected one call")


def test_an_identity_is_never_a_name_that_a_server_chose() -> None:
    with pytest.raises(UnknownName):
        offered(GOOD, [entry(WEAK, GOOD)])
    assert offered(GOOD, [entry(GOOD, "good"), entry(WEAK, GOOD)]) == GOOD
    assert offered("good", [entry(GOOD, "good")]) == GOOD
