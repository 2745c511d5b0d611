"""The protocol under chosen schedules: reserve, draw, store, send, by two hosts on one ledger.

What decides is the code of the service and the ledger (``Answering``, ``Ledger.post_together``,
``retention``). What it stands on is simulated, so that a schedule takes a fraction of a
millisecond: a database whose transactions take place, do not, or take place unnoticed; hosts that
crash at any step, and whose clocks differ; a database that is put back; an anchor that both hosts
share. A seed names a schedule, and a failure prints it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from reticent.core.errors import (
    AnswerLost,
    BudgetExceeded,
    InvalidInput,
    LedgerUnavailable,
    RequestUnderWay,
)
from reticent.ledger import ledger as ledger_module
from reticent.ledger.chain import EndMoved
from reticent.ledger.ledger import Ledger
from reticent.service import answering as answering_module
from reticent.service import retention, stored
from reticent.service.answering import Answer, Answering, Asked, Request
from reticent.service.drawing import Charged

NAMES = ("a", "b", "c")
GRANTED = 6
LEASE = 10.0


class Crash(BaseException):
    """The host is gone, in the middle of something."""


@dataclass(frozen=True)
class Tip:
    """The end of the chain; it is its own anchor."""

    ledger: str = "simulated"
    seq: int = 0
    digest: int = 0
    spent: int = 0

    @property
    def anchor(self) -> Tip:
        return self

    def holds(self, state: State, anchor: Tip) -> bool:
        return self.has(anchor, state.digests.get(anchor.seq))

    def has(self, anchor: Tip, digest: int | None) -> bool:
        return (0 if anchor.seq == 0 else digest) == anchor.digest


@dataclass
class State:
    """What a database holds."""

    tip: Tip = Tip()
    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    digests: dict[int, int] = field(default_factory=dict)
    gap: int = 0

    def copy(self) -> State:
        return State(self.tip, dict(self.rows), dict(self.digests), self.gap)

    def flush(self) -> None:
        """Nothing waits to be sent."""


class Page:
    """One transaction."""

    numbers = count(1)

    def __init__(self, state: State, tip: Tip, _: int = 0) -> None:
        self.connection, self.tip, self.tree = state, tip, SimpleNamespace(root=0)

    of = classmethod(lambda cls, state, tip, at=0: cls(state, tip, at))

    def note(self, _: str, *, spent: int = 0, seq: int = 0) -> None:
        digest = next(self.numbers)
        seq = seq or self.tip.seq + 1
        self.tip = replace(self.tip, seq=seq, digest=digest, spent=self.tip.spent + spent)
        self.connection.digests[seq] = digest

    def write(self) -> None:
        self.connection.tip = self.tip


class World:
    """A database, an anchor, two hosts and their clients."""

    is_sqlite, name = False, "simulated"

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = 1000.0
        self.state, self.kept = State(), [State()]
        self.standing: Tip | None = Tip()
        self.faults = self.put_back = False
        self.bodies: dict[str, set[bytes]] = {name: set() for name in NAMES}
        self.lost: set[str] = set()
        self.draws: Counter[str] = Counter()
        self.running: list[tuple[int, str, Iterator[None]]] = []
        self.hosts = [self._host(skew) for skew in (0.0, self.chance.uniform(-30.0, 30.0))]

    # What a ledger asks of its store, and of its anchor.
    def retried(self, work: Callable[[], Any]) -> Any:
        return work()

    def anchor_of(self, _: str) -> SimpleNamespace:
        return SimpleNamespace(
            path="simulated", read=lambda **_: self.standing, raise_to=self.raise_to
        )

    @contextmanager
    def read(self) -> Iterator[State]:
        yield self.state

    @contextmanager
    def write(self) -> Iterator[State]:
        state = self.state.copy()
        yield state
        what = self.chance.random() if self.faults else 1.0
        if what < 0.05:
            raise LedgerUnavailable("did not take place")
        self.state = state
        self.kept.append(state)
        if what < 0.10:
            raise LedgerUnavailable("took place, and nobody was told")

    def raise_to(self, anchor: Tip) -> Tip:
        if self.faults and self.chance.random() < 0.03:
            raise Crash
        if self.standing is None or anchor.seq > self.standing.seq:
            self.standing = anchor
        return self.standing

    def _host(self, skew: float) -> Answering:
        books = Ledger(self)  # type: ignore[arg-type]
        keys = SimpleNamespace(check=lambda page, key: None)
        found = Answering(
            *(books, keys, SimpleNamespace()),  # type: ignore[arg-type]
            lease=LEASE,
            clock=lambda: self.now + skew,
        )
        found.turn.acquire()  # as whoever answers has it
        return found

    # What happens.
    def ask(self, host: int, name: str) -> Iterator[None]:
        """A client's request: pauses wherever anything else may happen."""
        server = self.hosts[host]
        request = Request(_KEY, name, name.encode(), "")
        asked = Asked(request, SimpleNamespace(rows=1))  # type: ignore[arg-type]
        cost = SimpleNamespace(posting=SimpleNamespace(work=_charge, result=_reservation))
        ((_, done),) = server._charged({0: (asked, cost)})  # type: ignore[dict-item]
        if isinstance(done, Charged):
            assert self.standing is not None
            assert self.standing.seq >= done.reservation.position, "drawn before it was anchored"
            yield
            self.draws[name] += 1
            body = b"%d" % next(Page.numbers)
            yield
            ((_, done),) = server._stored([asked], {0: done}, {0: (body, f"receipt {body!r}")})
        if isinstance(done, Answer):
            assert self.put_back or name not in self.lost, "answered once it was said to be lost"
            yield
            if self.chance.random() < 0.8:  # or it is lost on its way
                self.bodies[name].add(done.body)
        elif isinstance(done, AnswerLost):
            self.lost.add(name)
        elif isinstance(done, Exception):
            expected = RequestUnderWay, BudgetExceeded, LedgerUnavailable
            gone = self.put_back and isinstance(done, InvalidInput)
            assert gone or isinstance(done, expected), done

    def step(self) -> None:
        """One thing, drawn at random."""
        self.now += self.chance.choice((0.0, 0.1, 3.0, 12.0))
        what = self.chance.random()
        if what < 0.30 or not self.running:
            host, name = self.chance.randrange(2), self.chance.choice(NAMES)
            self.running.append((host, name, self.ask(host, name)))
        elif what < 0.88:
            self.go_on(self.chance.randrange(len(self.running)))
        elif what < 0.92:
            self.crash(self.chance.randrange(2))
        elif what < 0.96:
            self.prune()
        elif what < 0.98:
            self.state = self.chance.choice(self.kept[-12:]).copy()
            self.put_back |= self.state.tip != self.kept[-1].tip
            self.kept.append(self.state)
        else:
            self.accept()

    def go_on(self, place: int) -> None:
        host, _, request = self.running[place]
        try:
            next(request)
        except StopIteration:
            self.running.pop(place)
        except Crash:
            self.running.pop(place)
            self.crash(host)

    def crash(self, host: int) -> None:
        self.running = [one for one in self.running if one[0] != host]

    def prune(self) -> None:
        names = [("p", name) for name in NAMES]
        try:
            self.hosts[0]._ledger.post_together([partial(retention._remove, self, names)])  # type: ignore[arg-type]
        except (Crash, LedgerUnavailable):
            self.crash(0)

    def accept(self) -> None:
        """The operator goes on with what was put back, and charges what was lost."""
        standing = self.standing
        assert standing is not None
        if not self.state.tip.holds(self.state, standing):
            state = self.state.copy()
            # As ``grants.post_acceptance``: of a copy that was written to since, all of it.
            shared = state.tip.spent if state.tip.seq < standing.seq else 0
            lost = max(0, standing.spent - shared)
            state.gap += lost
            page = Page(state, state.tip)
            page.note("accept", spent=lost, seq=max(state.tip.seq, standing.seq) + 1)
            page.write()
            self.state, self.standing = state, page.tip
            self.kept.append(state)

    def check(self) -> None:
        """What is promised, once all is quiet."""
        self.faults = False
        while self.running:
            self.go_on(0)
        self.accept()
        self.now += 1000.0
        for host in range(2):
            for name in NAMES:
                for _ in self.ask(host, name):
                    pass
        answered = sum(map(len, self.bodies.values()))
        assert answered <= self.state.tip.spent, "an answer that nobody paid for"
        assert self.state.tip.spent - self.state.gap <= GRANTED
        if not self.put_back:
            assert max(map(len, self.bodies.values())) <= 1, "one request has two answers"
            assert max(self.draws.values(), default=0) <= 1, "one request was drawn twice"
            assert self.state.tip.spent == len(self.state.rows)


_KEY: Any = SimpleNamespace(principal="p", id="k")


def _charge(page: Page, along: Callable[[str], None]) -> Any:
    if page.tip.spent >= GRANTED:
        return "refused"
    along(str(page.tip.seq + 1))
    page.note("reserve", spent=1)
    return page.tip


def _reservation(done: Any) -> Any:
    if done == "refused":
        raise BudgetExceeded("refused")

    def commit(page: Page) -> None:
        if page.connection.digests.get(done.seq) != done.digest:
            raise InvalidInput("the reservation is not in this ledger")  # as ``post_commits``
        page.note("commit")

    return SimpleNamespace(position=done.seq, committing=lambda _: commit)


def _find(page: Page, principal: str, name: str) -> dict[str, Any] | None:
    return page.connection.rows.get((principal, name))


def _add(page: Page, row: dict[str, Any]) -> None:
    name = (row["principal"], row["idempotency_key"])
    if name in page.connection.rows:
        raise LedgerUnavailable("the database has one row for each request")
    page.connection.rows[name] = row
    page.tree.root += 1


def _change(page: Page, row: dict[str, Any], **others: Any) -> dict[str, Any]:
    row = row | others
    page.connection.rows[row["principal"], row["idempotency_key"]] = row
    page.tree.root += 1
    return row


def _end(state: State, at: int = 0, **_: bool) -> tuple[Tip, int | None]:
    return state.tip, state.digests.get(at)


def _expect_end(state: State, tip: Tip, anchor: Tip) -> None:
    if state.tip != tip or not tip.has(anchor, state.digests.get(anchor.seq)):
        raise EndMoved


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, stand_in in (("find", _find), ("add", _add), ("change", _change)):
        monkeypatch.setattr(stored, name, stand_in)
    monkeypatch.setattr(ledger_module, "read_tip", lambda state, **_: state.tip)
    monkeypatch.setattr(ledger_module, "read_end", _end)
    monkeypatch.setattr(ledger_module, "expect_end", _expect_end)
    monkeypatch.setattr(ledger_module, "digest_at", lambda state, at: state.digests.get(at))
    monkeypatch.setattr(ledger_module, "Page", Page)
    monkeypatch.setattr(answering_module, "time", SimpleNamespace(sleep=lambda _: None))


def run(schedules: int) -> None:
    for seed in range(schedules):
        world = World(seed)
        world.faults = True
        try:
            for _ in range(world.chance.randrange(5, 40)):
                world.step()
            world.check()
        except AssertionError as error:
            raise AssertionError(f"schedule {seed}: {error}") from error


@pytest.mark.parametrize(
    "schedules",
    [10_000, pytest.param(10**6, marks=[pytest.mark.soak, pytest.mark.timeout(4 * 3600)])],
)
def test_schedules(schedules: int) -> None:
    run(schedules)


def _forgets_what_was_lost(page: Page, principal: str, name: str) -> dict[str, Any] | None:
    row = _find(page, principal, name)
    return None if row is not None and row["state"] == "lost" else row


def _overwrites(page: Page, row: dict[str, Any]) -> None:
    _change(page, row)


def test_a_planted_second_draw_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "find", _forgets_what_was_lost)
    monkeypatch.setattr(stored, "add", _overwrites)
    with pytest.raises(AssertionError, match=r"two answers|drawn twice|said to be lost"):
        run(10_000)


def test_a_planted_answer_of_a_request_that_was_given_up_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def careless(
        self: Answering, request: Request, reservation: Any, body: bytes, receipt: str
    ) -> Callable[[Any], None]:
        def work(page: Any) -> None:
            row = _find(page, "p", request.idempotency_key)
            if row is not None:
                _change(page, row, state="answered", receipt=receipt, body=body)
            reservation.committing(receipt)(page)

        return work

    monkeypatch.setattr(Answering, "_storing", careless)
    with pytest.raises(AssertionError, match=r"said to be lost|nobody paid for"):
        run(10_000)


def test_a_planted_anchor_that_stays_behind_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "raise_to", lambda self, anchor: anchor)
    with pytest.raises(AssertionError, match=r"nobody paid for|before it was anchored"):
        run(10_000)
