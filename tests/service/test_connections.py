"""Answers leave at once, though their head and body are written one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.service.conftest import Place
from tests.service.servers import running

ACKNOWLEDGED = 0.04
"""Seconds after which Linux acknowledges what came alone."""


def test_no_answer_waits_for_an_acknowledgement(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    """The server's socket names no protocol, as one that workers share: asyncio itself would
    leave the delay on, and then no answer at all is faster than it.
    """
    place = make_place(f"sqlite:///{tmp_path / 'ledger.db'}")
    with running(place.settings(), tmp_path / "log") as server:
        client = server.client(place.secret)
        seconds = [client.get("/v1/bundles").elapsed.total_seconds() for _ in range(30)]
    assert min(seconds) < ACKNOWLEDGED / 2, seconds
