"""Requests that wait together are answered together; one that is late or refused harms no other."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from reticent.core.errors import LedgerUnavailable, ServiceBusy
from reticent.service.answering import Answer
from reticent.service.core import Service
from reticent.service.keys import ApiKey
from reticent.service.together import Together
from tests.service.conftest import RECORDS, Place

COST = 500_000


class Held:
    """Keeps the first transaction of a service waiting, and counts all."""

    def __init__(self, service: Service) -> None:
        self.transactions = 0
        self.begun, self.let_go = threading.Event(), threading.Event()
        self._transaction = service.ledger._transaction
        service.ledger._transaction = self  # type: ignore[method-assign, assignment]

    def __call__(self, work: Any, *how: bool) -> Any:
        self.transactions += 1
        if self.transactions == 1:
            self.begun.set()
            assert self.let_go.wait(60)
        return self._transaction(work, *how)


@pytest.fixture
def service(place: Place) -> Iterator[Service]:
    found = Service(place.settings(threads=1))
    yield found
    found.close()


@pytest.fixture
def key(place: Place, service: Service) -> ApiKey:
    return service.keys.find(place.secret)


def body(*rows: list[float]) -> bytes:
    return json.dumps({"rows": rows}).encode()


def asks(service: Service, key: ApiKey, name: str, content: bytes) -> Awaitable[Answer]:
    bundle = service.catalogue.find("labels", may_ask=key.may_ask)
    return service.answered(key, bundle, name, content)


async def behind_one(
    service: Service, first: Awaitable[Answer], others: list[Awaitable[Answer]]
) -> tuple[int, list[Answer | BaseException]]:
    """What ``others`` get that come while ``first`` is charged, and in how many transactions."""
    held = Held(service)
    one = asyncio.ensure_future(first)
    await asyncio.to_thread(held.begun.wait, 60)
    rest = [asyncio.ensure_future(other) for other in others]
    await asyncio.sleep(0.05)  # until they wait
    held.let_go.set()
    assert not (await one).repeated
    found = await asyncio.gather(*rest, return_exceptions=True)
    return held.transactions, found


def test_one_that_is_refused_harms_no_other(
    make_place: Callable[..., Place], tmp_path: Any
) -> None:
    place = make_place(f"sqlite:///{tmp_path / 'ledger.db'}", epsilon=2.0)  # four answers
    service = Service(place.settings(threads=1))
    try:
        key = service.keys.find(place.secret)
        one, bad = body([0.3, 0.2]), b'{"rows": [[0.3]]}'
        names = ["same-name", "same-name", "too-wide", "too-much", "one-more", "one-less"]
        contents = [one, one, bad, body(*[[0.0, 0.0]] * 3), one, one]
        others = [
            asks(service, key, name, content) for name, content in zip(names, contents, strict=True)
        ]
        first = asks(service, key, "the-first", one)
        _, found = asyncio.run(behind_one(service, first, others))
    finally:
        service.close()
    kinds = [type(told).__name__ for told in found]
    assert kinds == ["Answer", "RequestUnderWay", "InvalidInput", "BudgetExceeded"] + ["Answer"] * 2
    assert place.spent(RECORDS) == 4 * COST


def test_who_is_late_is_not_charged(service: Service, key: ApiKey, place: Place) -> None:
    together = Together(service.answering, threads=1, deadline=0.05)
    asked = service.asked(
        key, service.catalogue.find("labels", may_ask=key.may_ask), "too-late", body([0.0, 0.0])
    )

    async def late() -> None:
        service.answering.turn.acquire()  # another one computes
        waiting = asyncio.ensure_future(together.answer(lambda: asked, size=10))
        await asyncio.sleep(0.1)
        service.answering.turn.release()
        with pytest.raises(ServiceBusy, match=r"0\.05 s"):
            await waiting

    asyncio.run(late())
    together.close()
    assert place.spent(RECORDS) == 0


def test_a_long_request_is_not_waited_for(service: Service) -> None:
    """Behind 64 KiB of bodies, and behind 64 requests, the next group begins."""
    together = Together(service.answering, threads=1, deadline=30.0)
    groups: list[int] = []
    answered = together._answered

    def noting(group: list[Any]) -> Any:
        groups.append(len(group))
        return answered(group)

    together._answered = noting  # type: ignore[method-assign]
    free = Answer(b"{}", repeated=False, rows=1)

    async def wait_for(sizes: list[int]) -> None:
        service.answering.turn.acquire()
        waiting = [
            asyncio.ensure_future(together.answer(lambda: free, size=size)) for size in sizes
        ]
        await asyncio.sleep(0.05)
        service.answering.turn.release()
        assert await asyncio.gather(*waiting) == [free] * len(sizes)

    asyncio.run(wait_for([10, 2**16, 10, 10]))
    assert groups == [2, 2]
    groups.clear()
    asyncio.run(wait_for([10] * 70))
    assert groups == [64, 6]
    together.close()


def test_a_client_that_has_gone_stops_nobody(service: Service) -> None:
    together = Together(service.answering, threads=1, deadline=30.0)
    free = Answer(b"{}", repeated=False, rows=1)

    async def gone() -> Answer:
        service.answering.turn.acquire()
        leaving = asyncio.ensure_future(together.answer(lambda: free, size=1))
        staying = asyncio.ensure_future(together.answer(lambda: free, size=1))
        await asyncio.sleep(0.02)
        leaving.cancel()
        service.answering.turn.release()
        return await staying

    assert asyncio.run(gone()) == free
    together.close()


def test_what_was_asked_is_answered_before_it_closes(service: Service) -> None:
    together = Together(service.answering, threads=2, deadline=30.0)
    free, done = Answer(b"{}", repeated=False, rows=1), []

    def slow() -> Answer:
        time.sleep(0.05)
        done.append(1)
        return free

    async def closing() -> list[Answer]:
        waiting = [asyncio.ensure_future(together.answer(slow, size=2**17)) for _ in range(4)]
        await asyncio.sleep(0.01)
        await asyncio.to_thread(together.close)
        assert len(done) == 4
        return await asyncio.gather(*waiting)

    assert asyncio.run(closing()) == [free] * 4


class Counted:
    """Counts the calls of what a served answer is made by."""

    def __init__(self, system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = {"checked": 0, "price": 0, "draw": 0}
        for name in self.calls:
            monkeypatch.setattr(system, name, self._counting(name, getattr(system, name)))
        monkeypatch.setattr(system, "release", None)  # it is not asked

    def _counting(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any, **named: Any) -> Any:
            self.calls[name] += 1
            return method(*given, **named)

        return counting


@pytest.mark.parametrize("many", [1, 10])
def test_an_answer_is_made_by_one_price_and_one_draw_for_all(
    service: Service, key: ApiKey, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    bundle = service.catalogue.find("labels", may_ask=key.may_ask)
    counted = Counted(bundle.system, monkeypatch)
    asked = [
        service.asked(key, bundle, f"request-{n}", body(*[[0.1 * n, 0.2]] * (1 + n % 3)))
        for n in range(many)
    ]
    with service.answering.turn:
        found = service.answering.answer(asked)  # type: ignore[arg-type]
    assert [type(one) for one in found] == [Answer] * many
    assert counted.calls == {"checked": many, "price": many, "draw": 1}
    with service.answering.turn:
        again = service.answering.answer(asked)  # type: ignore[arg-type]
    assert [one.body for one in again] == [one.body for one in found]  # type: ignore[union-attr]
    assert counted.calls["draw"] == 1


def test_a_draw_that_fails_is_spent_by_all_that_were_in_it_and_sent_to_none(
    service: Service, key: ApiKey, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is an answer that cannot be stored; and requests of another bundle get theirs."""
    system = service.catalogue.find("labels", may_ask=key.may_ask).system
    draw = system.draw

    def broken(inputs: Any, sampler: Any) -> Any:
        found = draw(inputs, sampler)
        if len(inputs) > 1:
            raise ZeroDivisionError
        return found

    monkeypatch.setattr(system, "draw", broken)
    rows = service.catalogue.find("curated", may_ask=key.may_ask)
    other = service.answered(
        key, rows, "another-bundle", b'{"rows": [[0.1, 0.2]], "subject": "patient-1"}'
    )
    first = asks(service, key, "the-first", body([0.3, 0.2]))
    asked = [asks(service, key, f"request-{number}", body([0.1, 0.2])) for number in range(3)]
    _, found = asyncio.run(behind_one(service, first, [*asked, other]))
    assert [type(one).__name__ for one in found] == ["ZeroDivisionError"] * 3 + ["Answer"]
    assert place.spent(RECORDS) == 4 * COST
    with pytest.raises(LedgerUnavailable):
        unstored(service, key, monkeypatch)
    assert place.spent(RECORDS) == 5 * COST


def unstored(service: Service, key: ApiKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks where the ledger is away once the charge is written."""
    waited = service.answering.waited
    charged: list[Any] = []

    def away(works: Any, *, keep: bool) -> Any:
        if charged:
            raise LedgerUnavailable("away")
        charged.extend(works)
        return waited(works, keep=keep)

    monkeypatch.setattr(service.answering, "waited", away)
    asyncio.run(_one(asks(service, key, "not-stored", body([0.1, 0.2]))))


async def _one(asked: Awaitable[Answer]) -> Answer:
    return await asked
