"""A client that pays gets its answers while others attack.

``--soak`` attacks the service behind its proxy with 1,000 connections without a key and 64 with
one, and compares the times of answers with those of a run in which the attackers attack somebody
else. Attackers and paying client share one core, and server and proxy the other. A smaller attack
runs there too, also on the service alone: of that no more is promised.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from reticent.service.keys import KeyStore
from tests.deploy.proxy import proxied
from tests.machine import peak_memory
from tests.service.conftest import RECORDS, Place
from tests.service.servers import running

ROOT = Path(__file__).parents[2]
LARGEST = 400 * 2**20


@dataclass(frozen=True)
class Paid:
    """What a paying client saw.

    Attributes:
        times: seconds of its answers.
        others: how many replies were no answers.
    """

    times: list[float]
    others: int

    def __add__(self, other: Paid) -> Paid:
        return Paid(self.times + other.times, self.others + other.others)

    @property
    def p99(self) -> float:
        """Seconds within which 99 of 100 answers come."""
        return float(np.quantile(self.times, 0.99))


def pay(port: int, secret: str, requests: int, load: Callable[..., object]) -> Paid:
    """Asks one request after the other on two connections."""
    body = b'{"rows":[[0.3,0.25]]}'
    head = (
        "POST /v1/bundles/labels/answers HTTP/1.1\r\nHost: answers\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Length: {len(body)}\r\nIdempotency-Key: "
        f"{os.urandom(6).hex()}-"
    ).encode()
    taken = count()
    times: list[float] = []
    others = 0
    while len(times) < requests and others <= requests:
        seen = load(
            port, lambda: b"%b%d\r\n\r\n%b" % (head, next(taken), body), clients=2, seconds=1
        )
        answered = seen.times.pop(200, [])  # type: ignore[attr-defined]
        times += answered
        others += sum(map(len, seen.times.values()))  # type: ignore[attr-defined]
    return Paid(times, others)


@contextmanager
def attacked(port: int, keyless: int, keyed: int, secret: str) -> Iterator[None]:
    """While the block runs, ``port`` is attacked; 0 for nobody's."""
    arguments = [sys.executable, "-m", "tests.service.attackers", str(port)]
    process = subprocess.Popen(
        [*arguments, str(keyless), str(keyed), secret],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout is not None
        for _ in range(3):  # until they are there
            assert process.stdout.readline().startswith("open")
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def pinned(process: int, core: int) -> None:
    """Keeps all threads of a process on one core."""
    for thread in os.listdir(f"/proc/{process}/task"):
        os.sched_setaffinity(int(thread), {core})


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("behind", "keyless", "keyed", "requests"),
    [(False, 16, 5, 100), (True, 16, 5, 100), (True, 1000, 64, 2000)],
)
def test_a_paying_client_is_served_under_attack(
    make_place: Callable[..., Place],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    behind: bool,
    keyless: int,
    keyed: int,
    requests: int,
) -> None:
    # Quiet and attacked by turns: what else the machine does is in both.
    rounds = 4 if requests >= 1000 else 1
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from http_load import load

    place = make_place(f"sqlite:///{tmp_path / 'ledger.db'}", epsilon=1e6)
    ledger = place.open()
    _, stolen = KeyStore(ledger).create("thief", bundles=["*"], subjects=[RECORDS])
    ledger.close()
    cores = sorted(os.sched_getaffinity(0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    settings = place.settings(behind_proxy=behind, level="WARNING")
    with running(settings, tmp_path / "log") as server, proxied(server.port, tmp_path) as proxy:
        assert server.process.pid is not None
        processes = [server.process.pid, *(proxy.processes() if behind else ())]
        port = proxy.port if behind else server.port
        for process in processes:
            pinned(process, cores[0])
        os.sched_setaffinity(0, {cores[-1]})
        try:
            pay(port, place.secret, 50, load)
            quiet, loud = Paid([], 0), Paid([], 0)
            for _ in range(rounds):
                with attacked(0, keyless, keyed, stolen):
                    quiet += pay(port, place.secret, requests // rounds, load)
                with attacked(port, keyless, keyed, stolen):
                    loud += pay(port, place.secret, requests // rounds, load)
        finally:
            os.sched_setaffinity(0, set(cores))
        memory = sum(map(peak_memory, processes))
    print(
        f"{'behind its proxy' if behind else 'alone'}: p99 {quiet.p99 * 1000:.1f} ms quiet, "
        f"{loud.p99 * 1000:.1f} ms attacked; median {np.median(quiet.times) * 1000:.1f}, "
        f"{np.median(loud.times) * 1000:.1f}; answers {len(quiet.times)}, {len(loud.times)}; "
        f"others {quiet.others}, {loud.others}; {memory / 2**20:.0f} MiB"
    )
    assert (quiet.others, loud.others) == (0, 0)
    assert memory <= LARGEST
    if keyless >= 1000:
        assert loud.p99 <= 2 * quiet.p99
