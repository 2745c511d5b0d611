"""Answers leave at once, and whoever opens many connections displaces himself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from reticent.service.connections import Connection, Door
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


@dataclass(eq=False)
class Stub:
    """A connection that can be cut, and nothing else."""

    address: str = ""
    here: bool = True

    def cut(self) -> None:
        self.here = False


def test_whoever_opens_many_displaces_himself() -> None:
    door = Door(most=6, per_address=4, head=1, body=1, send=1)
    payer, owner = Stub(), Stub()
    flood = [Stub() for _ in range(40)]
    vouched = Stub()
    assert door.enter(cast("Connection", vouched), "b")
    door.vouch(cast("Connection", vouched))
    assert door.enter(cast("Connection", payer), "a")
    entered = [door.enter(cast("Connection", one), f"b{n % 2}") for n, one in enumerate(flood)]
    assert entered[:4] == [True] * 4
    assert door.enter(cast("Connection", owner), "c")
    assert payer.here
    assert owner.here
    assert vouched.here
    assert sum(one.here for one in flood) < 40
    crowd = Door(most=100, per_address=4, head=1, body=1, send=1)
    assert [crowd.enter(cast("Connection", Stub()), "b") for _ in range(6)] == [True] * 4 + [
        False
    ] * 2
    for one in (payer, owner, vouched, *flood):
        door.leave(cast("Connection", one))
    fresh = [Stub() for _ in range(6)]
    assert all(door.enter(cast("Connection", one), str(n)) for n, one in enumerate(fresh))
    assert all(one.here for one in fresh)


@pytest.mark.parametrize(("taken", "cut"), [(0, True), (2**15, True), (2**17, False)])
def test_whoever_takes_too_little_of_an_answer_is_cut_off(taken: int, cut: bool) -> None:
    """Of eight looks, the last seven see ``taken`` bytes fewer than the one before."""

    async def looked() -> bool:
        sizes, ended = [2**20 - taken * look for look in range(1, 8)], asyncio.Event()
        connection = Connection.__new__(Connection)
        connection._door = cast("Door", SimpleNamespace(send=0.001))
        connection.loop = asyncio.get_running_loop()

        def left() -> int:
            if len(sizes) == 1:
                ended.set()
            return sizes.pop(0) if len(sizes) > 1 else sizes[0]

        gone: list[bool] = []

        def abort() -> None:
            gone.append(True)
            ended.set()

        connection.transport = cast(
            "asyncio.Transport", SimpleNamespace(get_write_buffer_size=left, abort=abort)
        )
        connection._look_again(2**20)
        await asyncio.wait_for(ended.wait(), 20)
        if connection._stuck is not None:
            connection._stuck.cancel()
        return bool(gone)

    assert asyncio.run(looked()) is cut
