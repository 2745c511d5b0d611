"""What is promised against parallel clients, kills, cut connections, forged names, old ledgers,
stolen keys and readers of logs; by real servers.

Thousands of kills and replays run with ``--soak``; a hundredth of them always.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
import sqlalchemy as sa

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.signatures import write_key_pair
from reticent.service.core import Service
from reticent.service.keys import KeyStore
from tests.service.conftest import COST, RECORDS, ROWS, Place, ask
from tests.service.cutting_proxy import cutting
from tests.service.servers import Running, running
from tests.service.test_answering import ask as charge


def committed_answers(place: Place) -> set[str]:
    """Receipts that the ledger's entries name."""
    ledger = place.open()
    with ledger.store.read() as connection:
        rows = connection.execute(sa.text("SELECT receipt FROM entries WHERE action = 'commit'"))
        found = {row.receipt for row in rows}
    ledger.close()
    return found


@pytest.mark.slow
def test_parallel_clients_of_two_servers_get_no_more_than_was_granted(
    make_place: Callable[..., Place], ledger_url: str, tmp_path: Path
) -> None:
    place = make_place(ledger_url, epsilon=10.0)  # room for 20 answers, 10 requests of two rows
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running(place.settings(), tmp_path / f"log{number}"))
            for number in range(2)
        ]
        clients = [server.client(place.secret) for server in servers]
        with ThreadPoolExecutor(64) as threads:
            told = list(
                threads.map(lambda number: ask(clients[number % 2], f"request-{number}"), range(64))
            )
        statuses = sorted(one.status_code for one in told)
        assert statuses == [200] * 10 + [403] * 54
        identifiers = {one.json()["receipt"]["identifier"] for one in told if one.is_success}
        assert identifiers == committed_answers(place)
        assert place.spent(RECORDS) == 20 * COST
        # One request that both servers get at once is charged and drawn once.
        ledger = place.open()
        ledger.grant(Scope(subject=RECORDS), Guarantee(1.0, 0.0, AddRemove(1, data_set=RECORDS)))
        ledger.close()
        with ThreadPoolExecutor(16) as threads:
            same = list(
                threads.map(lambda number: ask(clients[number % 2], "one-for-all"), range(16))
            )
        assert {one.status_code for one in same} <= {200, 409}
        assert len({one.content for one in same if one.status_code == 200}) == 1
        assert ask(clients[0], "one-for-all").content == ask(clients[1], "one-for-all").content
        assert place.spent(RECORDS) == 22 * COST


@dataclass(frozen=True)
class Killed:
    """What was left after servers were killed.

    Attributes:
        answers: receipts that clients have.
        booked: receipts that the ledger's entries name.
        requests, charges: rows of requests, and entries that charge.
        again: how many of the answers were asked for again and came as other bytes.
        spent: micro-epsilon.
    """

    answers: set[str]
    booked: set[str]
    requests: int
    charges: int
    again: int
    spent: int


def kill_servers(place: Place, folder: Path, kills: int, *, seed: int) -> Killed:
    """Kills servers while clients ask, and asks for some of their answers again."""
    chance = random.Random(seed)
    seen: dict[str, bytes] = {}
    turn = threading.Lock()
    number = iter(range(10**9))

    def pester(server: Running, stop: threading.Event, answered: threading.Event) -> None:
        with server.client(place.secret) as client:
            while not stop.is_set():
                with turn:
                    repeat = bool(seen) and chance.random() < 0.3
                    name = (
                        chance.choice(sorted(seen)) if repeat else f"request-{seed}-{next(number)}"
                    )
                try:
                    told = ask(client, name)
                except httpx.HTTPError:
                    return  # killed
                if told.status_code == 200:
                    with turn:
                        assert seen.setdefault(name, told.content) == told.content
                    answered.set()

    for _ in range(kills):
        with running(place.settings(lease=0.2), folder / "log") as server:
            stop, answered = threading.Event(), threading.Event()
            threads = [
                threading.Thread(target=pester, args=(server, stop, answered)) for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            if chance.random() < 0.5:
                assert answered.wait(30)
            time.sleep(chance.uniform(0.0, 0.1))
            server.kill()
            stop.set()
            for thread in threads:
                thread.join(30)
                assert not thread.is_alive()
    answers = [json.loads(body) for body in seen.values()]
    ledger = place.open()
    verified = ledger.verify(receipts=[answer["receipt"] for answer in answers])
    assert verified.ok, verified
    with ledger.store.read() as connection:
        rows = list(connection.execute(sa.text("SELECT state, booked FROM service_answers")))
        charges = connection.execute(
            sa.text("SELECT count(*) FROM entries WHERE action = 'reserve'")
        ).scalar_one()
    ledger.close()
    assert len(rows) == len({row.booked for row in rows})
    time.sleep(0.3)
    with running(place.settings(lease=0.2), folder / "log") as server:
        client = server.client(place.secret)
        again = [ask(client, name).content == body for name, body in sorted(seen.items())[:50]]
    return Killed(
        answers={answer["receipt"]["identifier"] for answer in answers},
        booked=committed_answers(place),
        requests=len(rows),
        charges=charges,
        again=again.count(False),
        spent=place.spent(RECORDS),
    )


SOAK = (pytest.mark.soak, pytest.mark.timeout(4 * 3600))


@pytest.mark.slow
@pytest.mark.parametrize("kills", [10, pytest.param(1000, marks=SOAK)])
def test_kills_leave_no_answer_uncharged_and_none_drawn_twice(
    make_place: Callable[..., Place], ledger_url: str, tmp_path: Path, kills: int
) -> None:
    found = kill_servers(make_place(ledger_url, epsilon=1e6), tmp_path, kills, seed=kills)
    assert found.answers
    assert found.answers <= found.booked
    assert found.requests == found.charges
    assert found.spent == 2 * found.charges * COST
    assert found.again == 0


def test_a_crash_between_charge_and_answer_is_spent_and_never_drawn_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = Service(place.settings(lease=60.0))
    monkeypatch.setattr(dying.answering, "_drawn", lambda _: 1 / 0)  # charged, and no more
    with running(place.settings(lease=0.5), tmp_path / "log") as server:
        client = server.client(place.secret)
        monkeypatch.setattr(dying.answering, "_clock", lambda: time.time() - 58.0)
        with pytest.raises(ZeroDivisionError):
            charge(
                dying,
                dying.keys.find(place.secret),
                "answered-1",
                json.dumps({"rows": ROWS}).encode(),
            )
        dying.close()
        ledger = place.open()
        told = ask(client, "answered-1")
        assert (told.status_code, told.json()["code"]) == (409, 22)
        assert told.headers["Retry-After"] == "1"
        time.sleep(2.1)
        for _ in range(3):
            told = ask(client, "answered-1")
            assert (told.status_code, told.json()["code"]) == (410, 23)
        assert ask(client, "answered-1", {"rows": ROWS[:1]}).status_code == 422
        with ledger.store.read() as connection:
            state = connection.execute(sa.text("SELECT state FROM service_answers")).scalar_one()
        ledger.close()
        assert state == "lost"
    assert place.spent(RECORDS) == 2 * COST


def replay(place: Place, folder: Path, times: int) -> tuple[int, set[bytes]]:
    """Sends one request through a proxy that cuts the connection at one byte after another: how
    often it was cut, and all bodies that came.
    """
    cuts, bodies = 0, set[bytes]()
    limit: int | None = None
    with (
        running(place.settings(), folder / "log") as server,
        cutting(server.url, lambda _: limit) as url,
    ):
        whole = len(ask(server.client(place.secret), "measured").content) + 600
        for number in range(times):
            for after in (number * whole // times, None):
                limit = after
                with httpx.Client(
                    base_url=url, headers={"Authorization": f"Bearer {place.secret}"}
                ) as client:
                    try:
                        told = ask(client, "the-one-request")
                    except httpx.HTTPError:
                        cuts += 1
                        continue
                if told.status_code == 200:
                    bodies.add(told.content)
        return cuts, bodies


@pytest.mark.slow
@pytest.mark.parametrize("times", [20, pytest.param(1000, marks=SOAK)])
def test_an_answer_that_is_cut_off_at_any_byte_is_the_same_when_asked_again(
    place: Place, tmp_path: Path, times: int
) -> None:
    cuts, bodies = replay(place, tmp_path, times)
    assert cuts >= 0.75 * times
    assert len(bodies) == 1
    assert place.spent(RECORDS) == 2 * 2 * COST  # the measured one, and the one


def test_nobody_spends_the_budget_of_another(any_place: Place, tmp_path: Path) -> None:
    ledger = any_place.open()
    before = ledger.anchor()
    with running(any_place.settings(), tmp_path / "log") as server:
        bolt = server.client(any_place.other)
        for body in (
            {"rows": ROWS, "subject": "patient-1"},
            {"rows": ROWS, "subjects": ["patient-9", "patient-1"]},
        ):
            previewed = {"answers": 2, **{name: body[name] for name in body if name != "rows"}}
            for told in (
                ask(bolt, "forged-1", body, bundle="curated"),
                bolt.post("/v1/bundles/curated/preview", json=previewed),
            ):
                assert (told.status_code, told.json()["code"]) == (403, 21)
        assert ask(bolt, "forged-2").status_code == 403
        assert ledger.anchor() == before
        granted = {"rows": ROWS, "subject": "patient-9"}
        assert ask(bolt, "granted-1", granted, bundle="curated").status_code == 200
    ledger.close()


def test_a_revoked_key_charges_nothing_under_load(any_place: Place, tmp_path: Path) -> None:
    ledger = any_place.open()
    keys = KeyStore(ledger)
    stolen, secret = keys.create("thief", bundles=["*"], subjects=[RECORDS])
    stop = threading.Event()
    told: list[tuple[float, int]] = []

    def use(number: int) -> None:
        with server.client(secret) as client:
            for count in range(10**6):
                if stop.is_set():
                    return
                status = ask(client, f"stolen-{number}-{count}").status_code
                told.append((time.monotonic(), status))

    with running(any_place.settings(), tmp_path / "log") as server:
        threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        while not any(status == 200 for _, status in told):
            time.sleep(0.01)
        keys.revoke(stolen.id)
        revoked, spent = time.monotonic(), any_place.spent(RECORDS)
        time.sleep(1.2)
        stop.set()
        for thread in threads:
            thread.join()
    ledger.close()
    assert any_place.spent(RECORDS) == spent  # not one charge after revoke has returned
    assert {status for at, status in told if at > revoked + 1.0} == {401}


def test_nothing_private_is_written_at_debug(
    make_place: Callable[..., Place], postgres_url: str, tmp_path: Path
) -> None:
    place = make_place(f"{postgres_url}&password=canary-password")
    with running(place.settings(level="DEBUG"), tmp_path / "log") as server:
        client = server.client(place.secret)
        rows = [[0.123456789, -0.987654321]]
        assert ask(client, "canary-name-1", {"rows": rows}).status_code == 200
        body = {"rows": rows, "subject": "patient-1"}
        assert ask(client, "canary-name-2", body, bundle="curated").is_success
        bad = {"rows": [["canary-text", 0.123456789]], "canary-field": 0.123456789}
        ask(client, "canary-name-2", bad)
        client.get("/v1/bundles/canary-bundle/card?canary-query=0.123456789")
        client.get("/canary-path/0.123456789")
        client.request("CANARY-METHOD", "/v1/bundles")
        client.get("/v1/budget", params={"subject": "canary-subject"})
        client.get("/v1/bundles", headers={"Authorization": "Bearer canary-secret"})
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(b"GET /canary-raw HTTP/9.9\r\ncanary-header\r\n\r\n")
            raw.recv(4096)
        metrics = server.client(place.owner).get("/metrics").text
        # A fault inside: the table of answers is gone.
        engine = sa.create_engine(postgres_url)
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE service_answers RENAME TO gone")
        engine.dispose()
        fault = ask(client, "canary-name-3", {"rows": rows})
        assert fault.status_code in (500, 503)
        server.stop()
    written = (tmp_path / "log").read_text()
    assert '"route": "answers"' in written
    assert '"event": "stopped"' in written
    for text in (written, metrics, fault.text):
        for canary in ("canary", "0.1234567", "0.9876543", "patient-1", place.secret[9:]):
            assert canary.lower() not in text.lower(), canary
    for line in written.splitlines():
        assert isinstance(json.loads(line), dict)


def test_too_much_at_once_is_refused_at_once_and_costs_nothing(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    place = make_place(f"sqlite:///{tmp_path / 'ledger.db'}", epsilon=1e6)
    headers = {"Authorization": f"Bearer {place.secret}"}
    with running(place.settings(queue=8, per_key=4), tmp_path / "log") as server:

        def one(number: int) -> int:
            with httpx.Client(base_url=server.url, headers=headers, timeout=120) as client:
                return ask(client, f"overload-{number}", {"rows": ROWS * 500}).status_code

        with ThreadPoolExecutor(32) as threads:
            told = list(threads.map(one, range(64)))
        assert set(told) == {200, 429}
        assert place.spent(RECORDS) == told.count(200) * 1000 * COST


def test_a_stop_finishes_what_is_under_way(place: Place, tmp_path: Path) -> None:
    with running(place.settings(), tmp_path / "log") as server:
        client = server.client(place.secret)
        with ThreadPoolExecutor(1) as threads:
            told = threads.submit(ask, client, "last-one", {"rows": ROWS * 400})
            while not place.spent(RECORDS):
                time.sleep(0.001)
            server.stop()  # charged, and perhaps not answered yet
            found = told.result()
    assert found.status_code == 200
    assert {found.json()["receipt"]["identifier"]} == committed_answers(place)
    assert '"event": "stopped"' in (tmp_path / "log").read_text()
    assert place.spent(RECORDS) == 800 * COST


def test_requests_in_the_database_are_keyed(place: Place, tmp_path: Path) -> None:
    """Whoever has the database alone cannot check a guess of the rows."""
    nonce = "5f" * 16
    with running(place.settings(), tmp_path / "log") as server:
        first = ask(server.client(place.secret), **{"Request-Nonce": nonce})
    ledger = place.open()
    with ledger.store.read() as connection:
        row = connection.execute(sa.text("SELECT request, body FROM service_answers")).one()
    assert nonce.encode() not in bytes(row.body)  # it would key the receipt's digest of the rows
    ledger.close()
    assert bytes(row.body) == first.content
    from reticent.service.requests import Answers, parsed, request_digest
    from reticent.service.signing import Signer

    body = parsed(json.dumps({"rows": ROWS}).encode(), Answers)
    identity = first.json()["bundle"]
    table = np.array(ROWS, dtype=float)
    bound = first.json()["receipt"]["request"]
    named = {"bundle": identity, "body": body, "table": table, "bound": bound}
    mine = request_digest(Signer(place.signing_key).secret, **named)
    assert mine == bytes(row.request)
    write_key_pair(tmp_path / "another.pem")
    other = request_digest(Signer(tmp_path / "another.pem").secret, **named)
    assert other != bytes(row.request)
