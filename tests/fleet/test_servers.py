"""A shuffler and an aggregator as processes of their own, asked over HTTP."""

from __future__ import annotations

import base64
import json
import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi")

from reticent.client import Gateway
from reticent.client.steps import Retries
from reticent.core.errors import UntrustedSignature
from reticent.core.guarantees import Guarantee
from reticent.fleet import Round, check_counts
from reticent.fleet.aggregator import counted, scope_of
from reticent.fleet.sealing import ENVELOPE
from reticent.fleet.shuffler import SIGNING
from reticent.ledger.ledger import Ledger
from reticent.release.bundle import sign_bundle
from tests.fleet.fleets import Fleet, envelopes
from tests.machine import free_port, peak_memory, wait_until
from tests.service.servers import command_process

_PATIENT = Retries(attempts=60, first_pause=0.1, longest_pause=0.5)


class Site:
    """Files and addresses of a round's two servers."""

    def __init__(self, fleet: Fleet, round_: Round) -> None:
        self.fleet, self.round, folder = fleet, round_, fleet.folder
        key = fleet.aggregator_home / SIGNING
        bundle = fleet.encoder.save(folder / "bundle")
        sign_bundle(bundle, key=key)
        round_.write(folder / "round.json", key=key)
        ledger = folder / "ledger.sqlite"
        with_budget = Ledger.create(ledger)
        adjacency = round_.guarantee.adjacency
        with_budget.grant(scope_of(round_), Guarantee(1000.0, 0.5, adjacency))
        with_budget.close()
        self.ports = {"shuffle": free_port(), "aggregate": free_port()}
        trusted = str(key.with_suffix(".pub.pem"))
        self._shared = [str(folder / "round.json"), "--trusted-key", trusted]
        self._own = {
            "shuffle": ["--home", str(fleet.shuffler_home), "--to", self.url("aggregate")],
            "aggregate": [
                "--home", str(fleet.aggregator_home), "--bundle", str(bundle), "--ledger",
                str(ledger),
            ],
        }  # fmt: skip

    def url(self, party: str) -> str:
        """Address of a party."""
        return f"http://127.0.0.1:{self.ports[party]}"

    def start(self, party: str) -> BaseProcess:
        """A party's process."""
        port = ["--port", str(self.ports[party])]
        command = [party, "serve", *self._shared, *self._own[party], *port]
        return command_process(command, self.fleet.folder / f"{party}.log")

    @contextmanager
    def running(self) -> Iterator[dict[str, BaseProcess]]:
        """Both processes, which are gone afterwards."""
        processes = {party: self.start(party) for party in self.ports}
        try:
            yield processes
        finally:
            for process in processes.values():
                process.kill()
                process.join()

    def gateway(self, party: str = "shuffle") -> Gateway:
        """A way to a party, which waits until it is there."""
        return Gateway(self.url(party), self.round, retries=_PATIENT)

    def finished(self, seconds: float) -> None:
        """Wait until the round is counted."""
        with self.gateway("aggregate") as asking:
            wait_until(lambda: asking.status()["state"] == "done", seconds)


def test_a_round_over_http(fleet: Fleet) -> None:
    site = Site(fleet, fleet.round(most=25))
    shuffler = fleet.shuffler(site.round)
    sealed = envelopes(shuffler, [0, 1, 2, 2, 2] * 5)
    shuffler.close()
    with site.running(), site.gateway() as gateway:
        assert gateway.status() == {
            "state": "open",
            "reports": 0,
            "statement": None,
            "waits": "",
        }
        address = f"{site.url('shuffle')}/v1/rounds/{site.round.digest.hex()}"
        for body, status in _bad_bodies():
            reply = httpx.post(
                f"{address}/reports", content=body, headers={"Content-Type": "application/json"}
            )
            assert (reply.status_code, reply.headers["content-type"]) == (
                status,
                "application/problem+json",
            ), body[:80]
        assert httpx.get(f"{address}/reports").status_code == 405
        assert httpx.get(f"{address}x").status_code == 404
        assert gateway.send([*sealed[:24], sealed[0][:-1]]) == ["taken"] * 24 + ["length"]
        assert gateway.status()["state"] == "open"
        assert gateway.send(sealed[23:]) == ["taken", "taken"]
        site.finished(60)
        with pytest.raises(UntrustedSignature):
            gateway.check()  # one report went in two posts: 26 acknowledged, 25 stated
    found = counted(site.round, fleet.aggregator_home)
    assert found.counts.sum() == 25
    assert sorted(found.counts.tolist()) == [5, 5, 15]
    logged = (fleet.folder / "shuffle.log").read_text()
    assert base64.b64encode(sealed[0]).decode()[:20] not in logged


def _bad_bodies() -> list[tuple[bytes, int]]:
    one = base64.b64encode(bytes(ENVELOPE)).decode()
    bodies: list[tuple[Any, int]] = [
        ({}, 422),
        ({"reports": []}, 422),
        ({"reports": [1]}, 422),
        ({"reports": ["!"]}, 422),
        ({"reports": [one], "more": 1}, 422),
        ({"reports": [one] * 1001}, 422),
        ({"reports": [[one]]}, 422),
    ]
    return [(json.dumps(body).encode(), status) for body, status in bodies] + [(b"{", 422)]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_kills_forward_each_report_once_or_never(fleet: Fleet, seed: int) -> None:
    """Both servers are killed again and again while 6,000 reports come and leave."""
    chance = random.Random(seed)
    total = 6000
    site = Site(fleet, fleet.round(least=total, most=total, hostile=0, delta=1e-6))
    shuffler = fleet.shuffler(site.round)
    codes = [chance.choice((0, 0, 1)) for _ in range(total)]
    sealed = envelopes(shuffler, codes)
    shuffler.close()
    with site.running() as processes, site.gateway() as gateway:
        start, killed, deadline = 0, 0, time.monotonic() + 900
        asking = site.gateway("aggregate")
        while asking.status()["state"] != "done":
            assert time.monotonic() < deadline
            if start < total:
                verdicts = gateway.send(sealed[start : start + 300])
                assert set(verdicts) == {"taken"}
                start += 300
            if killed < 20 and chance.random() < 0.5:
                party = chance.choice(list(processes))
                time.sleep(chance.random() * 0.2)
                processes[party].kill()
                processes[party].join()
                processes[party] = site.start(party)
                killed += 1
        asking.close()
    assert killed >= 15
    found = counted(site.round, fleet.aggregator_home)
    assert found.refused == 0
    assert found.counts.tolist() == [codes.count(code) for code in range(3)]


def _cpu_seconds(process: BaseProcess) -> float:
    """What a process has computed so far, on Linux."""
    spent = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_million_reports(fleet: Fleet) -> None:
    """10^6 sealed reports, posted by 100 gateways in requests of 1,000, through both servers
    (RETICENT_FLEET sets another number): prints seconds, and CPU seconds and peak memory of each
    party. Sealing is not counted.
    """
    total = int(os.environ.get("RETICENT_FLEET", "1000000"))
    site = Site(fleet, fleet.round(least=total, most=total, hostile=0, delta=1e-6))
    shuffler = fleet.shuffler(site.round)
    posts = [envelopes(shuffler, [n % 3 for n in range(1000)]) for _ in range(total // 1000)]
    shuffler.close()
    with ExitStack() as open_, site.running() as processes:
        gateways = [open_.enter_context(site.gateway()) for _ in range(100)]
        for party in processes:
            with site.gateway(party) as ready:
                ready.status()
        started, own = time.monotonic(), time.process_time()

        def carry(number: int) -> None:
            for post in posts[number::100]:
                assert set(gateways[number].send(post)) == {"taken"}

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(carry, range(100)))
        taken = time.monotonic() - started
        site.finished(1800)
        print(f"{total} reports: {taken:.1f} s to take, {time.monotonic() - started:.1f} s in all")
        spent = {party: _cpu_seconds(process) for party, process in processes.items()}
        print(f"CPU seconds: {spent}, gateways {time.process_time() - own:.1f}")
        peaks = {party: peak_memory(process.pid) for party, process in processes.items()}
        print({party: f"{peak / 2**20:.0f} MiB" for party, peak in peaks.items()})
        signed = [one for gateway in gateways for one in gateway.acknowledgements]
        check_counts(site.round, signed, gateways[0].status()["statement"])
    assert counted(site.round, fleet.aggregator_home).counts.sum() == total
