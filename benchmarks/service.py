"""How fast the service answers: rows and requests a second and p99, against workers and rows a
request, beside the same call in-process.

    python benchmarks/service.py [--seconds 5] [--workers 1 2] [--postgres URL] [--folder FOLDER]
        [--only start in-process service overload memory cost] [--requests 100000]

Claims: at least 10,000 rows a second in requests of 1,000 rows of a table bundle; 300 requests of
one row a second with durable charges on SQLite (synchronous=FULL); a request too many is refused
with 429 in under 50 ms, and nothing is charged for it; the first answer and page come within ten
seconds; memory stays flat (``--only memory``). ``--only cost`` prints processor time by request and
row, of server and client, and how long 16 clients wait; its peers are ``bare_service.py``, and for
rows ``release`` of the same matrix in one process without a ledger, which no service can fall
below. Peer of the others, in the same run: ``release`` with the same ledger in one process, which
waits for the disk in each call and for nobody else. Processor time is printed beside the clock,
since a busy machine slows the clock alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path

import numpy as np
from figures import Figure, processor_seconds
from http_load import Loaded, load

import reticent
from reticent.client import Client
from reticent.core import Guarantee, Scope
from reticent.core.signatures import write_key_pair
from reticent.ledger import Ledger
from reticent.service.keys import KeyStore
from reticent.systems.certified.reserve_system import ConvexCertifiedClassifier

RECORDS = "benchmark"
ENOUGH = 1e11
FEATURES = 14
WIDTHS = (8, 64)
"""Columns of the tables of ``--only cost``."""


def make(folder: Path, url: str, others: Sequence[int] = ()) -> tuple[str, np.ndarray]:
    """A bundle of a table with 14 columns, and with each number of ``others``, a ledger, a key; the
    key and rows to ask about.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 5000)
    for features in (*others, FEATURES):
        X = rng.normal(size=(5000, features)) * 0.1 + 0.1 * (2 * y[:, None] - 1)
        model = ConvexCertifiedClassifier(epsilon=0.1, classes=[0, 1], data_set=RECORDS)
        model.fit(X, y)
        name = "labels" if features == FEATURES else f"labels-{features}"
        model.save(folder / "bundles" / name)
    write_key_pair(folder / "key.pem")
    ledger = Ledger.create(url, synchronous="NORMAL", anchor=folder / "anchors")
    total = Guarantee(ENOUGH, 0.0, model.guarantee.adjacency)
    ledger.grant(Scope(subject=RECORDS), total)
    _, secret = KeyStore(ledger).create("acme", bundles=["*"], subjects=["*"])
    ledger.close()
    return secret, X[:1000].round(4)


class Server:
    """`reticent serve` in processes of its own."""

    def __init__(self, folder: Path, url: str, workers: int, **settings: object) -> None:
        self.port = _free_port()
        given = {"bundles": folder / "bundles", "signing_key": folder / "key.pem", "ledger": url}
        given |= {"port": self.port, "workers": workers, "level": "WARNING", **settings}
        variables = {f"RETICENT_SERVE_{name.upper()}": str(value) for name, value in given.items()}
        variables["RETICENT_ANCHOR"] = str(folder / "anchors")
        self._start(["-m", "reticent", "serve"], variables)

    def _start(self, arguments: list[str], variables: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **variables},
            start_new_session=True,
        )
        latest = time.monotonic() + 120
        while not _listens(self.port):
            if self.process.poll() is not None or time.monotonic() > latest:
                raise SystemExit("the server did not start")
            time.sleep(0.05)

    def processes(self) -> list[int]:
        """All of its process ids."""
        found = [self.process.pid]
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    parent = int(
                        Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()[1]
                    )
                except OSError:
                    continue
                if parent == self.process.pid:
                    found.append(int(name))
        return found

    def busy(self) -> float:
        """Processor seconds so far."""
        ticks = 0
        for process in self.processes():
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """MiB of its largest process."""
        sizes = [
            int(Path(f"/proc/{process}/statm").read_text().split()[1])
            for process in self.processes()
        ]
        return max(sizes) * resource.getpagesize() / 2**20

    def stop(self) -> None:
        """Ends it, and waits."""
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(60)


class Bare(Server):
    """`bare_service.py` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = _free_port()
        program = str(Path(__file__).with_name("bare_service.py"))
        self._start([program, str(folder), str(self.port)], {})


def ask_for(
    server: Server,
    secret: str,
    rows: list[list[float]],
    *,
    clients: int,
    seconds: float,
    rest: float = 0.0,
    bundle: str = "labels",
) -> Loaded:
    """What ``clients`` see that ask about ``rows``, each time with a new idempotency key."""
    body = json.dumps({"rows": rows}, separators=(",", ":")).encode()
    head = (
        f"POST /v1/bundles/{bundle}/answers HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {secret}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nIdempotency-Key: {os.urandom(6).hex()}-"
    ).encode()
    taken = count()

    def request() -> bytes:
        return b"%b%d\r\n\r\n%b" % (head, next(taken), body)

    return load(server.port, request, clients=clients, seconds=seconds, rest=rest)


def in_process(folder: Path, url: str, rows: np.ndarray, seconds: float) -> None:
    """The same call without a service."""
    system = reticent.load(folder / "bundles" / "labels")
    ledger = Ledger.open(url, anchor=folder / "anchors")
    scope = Scope("acme", RECORDS, system.bundle_identity_)
    for many in (1, 100, 1000):
        times = []
        started, busy = time.perf_counter(), time.process_time()
        while time.perf_counter() - started < seconds:
            begun = time.perf_counter()
            system.release(rows[:many], ledger=ledger, scope=scope)
            times.append(time.perf_counter() - begun)
        lasted, busy = time.perf_counter() - started, time.process_time() - busy
        _tell("in-process", 0, many, times, lasted, busy)
    ledger.close()


def _tell(
    where: str, workers: int, rows: int, times: list[float], lasted: float, busy: float
) -> None:
    if workers < 2 and rows == 1000:
        what = f"rows a processor answers, requests of 1,000, {where}"
        Figure.of(what, [len(times) * rows / max(busy, 1e-9)], unit="a second").keep()
    p99 = np.quantile(times, 0.99) * 1000 if times else float("nan")
    rate = len(times) / lasted
    print(
        f"{where:12} workers {workers} rows {rows:5}: {rate:8.1f} requests/s "
        f"{rate * rows:10.0f} rows/s  p99 {p99:7.1f} ms  "
        f"{len(times) / max(busy, 1e-9):8.1f} requests and "
        f"{len(times) * rows / max(busy, 1e-9):9.0f} rows a processor second"
    )


def main() -> None:
    """Prints one line for each setting."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database")
    parser.add_argument("--requests", type=int, default=100_000, help="of --only memory")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=("start", "in-process", "service", "overload", "memory", "cost"),
        default=["start", "in-process", "service", "overload"],
    )
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        (folder / "bundles").mkdir()
        url = chosen.postgres or f"sqlite:///{folder / 'ledger.db'}"
        secret, rows = make(folder, url, WIDTHS if "cost" in chosen.only else ())
        if "cost" in chosen.only:
            cost(folder, url, secret, chosen.seconds)
        if "start" in chosen.only:
            starts(folder, url, secret, rows)
        if "in-process" in chosen.only:
            in_process(folder, url, rows, chosen.seconds)
        for workers in chosen.workers if "service" in chosen.only else ():
            server = Server(folder, url, workers)
            try:
                for many, clients in ((1, 32), (100, 8), (1000, 4)):
                    asked = rows[:many].tolist()
                    ask_for(server, secret, asked, clients=clients, seconds=1.0)
                    before = server.busy()
                    seen = ask_for(server, secret, asked, clients=clients, seconds=chosen.seconds)
                    busy = server.busy() - before
                    _tell("service", workers, many, seen.times.get(200, []), seen.lasted, busy)
                    print(
                        f"  statuses {_statuses(seen)}; largest process {server.memory():.0f} MiB; "
                        f"clients took {seen.busy / seen.lasted:.0%} of a processor"
                    )
            finally:
                server.stop()
        if "overload" in chosen.only:
            overload(folder, url, secret, rows, chosen.seconds)
        if "memory" in chosen.only:
            memory(folder, url, secret, rows, chosen.requests)


def cost(folder: Path, url: str, secret: str, seconds: float) -> None:
    """Processor time by request and by row, five times each, and how long each of 16 clients waits:
    means that a slow machine moves, and so a range.
    """
    server, bare = Server(folder, url, 1), Bare(folder)
    health = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    rng = np.random.default_rng(1)

    def repeated(work: Callable[[], tuple[float, float]]) -> tuple[list[float], list[float]]:
        work()  # warm
        first, second = zip(*(work() for _ in range(5)), strict=True)
        return list(first), list(second)

    def asked(
        many: int, width: int, clients: int = 1, server: Server = server
    ) -> tuple[float, float]:
        rows = rng.normal(size=(many, width)).tolist()
        before = server.busy()
        seen = ask_for(
            server, secret, rows, clients=clients, seconds=seconds / 5, bundle=f"labels-{width}"
        )
        times = seen.times[200]
        if clients > 1:
            return float(np.median(times)), float(np.quantile(times, 0.99))
        return (server.busy() - before) / len(times), float(np.median(times))

    def checked() -> tuple[float, float]:
        before = server.busy()
        seen = load(server.port, lambda: health, clients=1, seconds=seconds / 5)
        return (server.busy() - before) / len(seen.times[200]), 0.0

    try:
        Figure.of("server time of GET /healthz", repeated(checked)[0]).keep()
        ours, least = zip(
            *((asked(1, 8)[0], asked(1, 8, server=bare)[0]) for _ in range(6)), strict=True
        )
        Figure.of(
            "server time of one answer",
            ours[1:],
            peer="bare FastAPI and SQLite, with two waits for the disk",
            theirs=least[1:],
        ).keep()
        for width in WIDTHS:
            rows = rng.normal(size=(1000, width))
            system = reticent.load(folder / "bundles" / f"labels-{width}")
            alone = processor_seconds(lambda s=system, X=rows: s.release(X), runs=50, each=1000)
            for arrow in (False, True):
                with Client(f"http://127.0.0.1:{server.port}", secret, arrow=arrow) as client:

                    def answered(
                        width: int = width, rows: np.ndarray = rows, client: Client = client
                    ) -> tuple[float, float]:
                        used, before, calls = time.process_time(), server.busy(), 50
                        for _ in range(calls):
                            client.answers(rows, bundle=f"labels-{width}")
                        own, theirs = time.process_time() - used, server.busy() - before
                        return theirs / calls / len(rows), own / calls / len(rows)

                    served, took = repeated(answered)
                what = f"a row of {width} columns, 1,000 in a request"
                what += " of Arrow" if arrow else ""
                Figure.of(
                    f"server time of {what}", served, peer="release alone", theirs=alone
                ).keep()
                Figure.of(f"client time of {what}", took).keep()
        middle, late = repeated(lambda: asked(1, 8, 16))
        Figure.of("wait of 16 clients, median", middle, unit="s by the clock").keep()
        Figure.of("wait of 16 clients, p99", late, unit="s by the clock").keep()
        print(f"p99 / median: {np.median(np.divide(late, middle)):.2f}")
        server.stop()
        server = Server(folder, url, 1, durable=False)
        own = repeated(lambda: asked(1, 8, server=server))[0]
        Figure.of("server time of one answer that need not survive a power cut", own).keep()
    finally:
        server.stop()
        bare.stop()


def overload(folder: Path, url: str, secret: str, rows: np.ndarray, seconds: float) -> None:
    """Four times as many clients as the queue holds: such that wait after 429 as they are told, and
    such that ask again at once.
    """
    ledger = Ledger.open(url, anchor=folder / "anchors")
    for rest, clients in ((1.0, "obedient"), (0.0, "insistent")):
        server = Server(folder, url, 1, queue=16)
        try:
            before = sum(budget.spent_epsilon for budget in ledger.report().budgets)
            seen = ask_for(
                server, secret, rows[:1].tolist(), clients=64, seconds=seconds, rest=rest
            )
            after = sum(budget.spent_epsilon for budget in ledger.report().budgets)
        finally:
            server.stop()
        refused = seen.times.get(429, [float("nan")])
        print(
            f"overload by {clients} clients: {_statuses(seen)}; 429 after "
            f"{np.median(refused) * 1000:.1f} ms (median), {np.quantile(refused, 0.99) * 1000:.1f} "
            f"ms (p99); charged {(after - before) / 1e5:.0f} requests for "
            f"{len(seen.times.get(200, []))} answers"
        )
    ledger.close()


def starts(folder: Path, url: str, secret: str, rows: np.ndarray) -> None:
    """Seconds from the command line to the first answer and the first page."""
    for name, arguments in (
        ("serve", None),
        ("serve --demo", [sys.executable, "-m", "reticent", "serve", "--demo"]),
    ):
        began = time.perf_counter()
        if arguments is None:
            server = Server(folder, url, 1)
            port, bundle, key, asked = server.port, "labels", secret, rows[:1].tolist()
            process = server.process
        else:
            port, bundle, asked = _free_port(), "blobs", [[0.5, 0.5]]
            process = subprocess.Popen(
                [*arguments, "--port", str(port)], stderr=subprocess.PIPE, start_new_session=True
            )
            assert process.stderr is not None
            key = ""
            for line in process.stderr:
                found = re.search(rb"Bearer (reticent_[A-Za-z0-9_-]+)", line)
                key = found[1].decode() if found else key
                data = re.search(rb"-d '(.*)'", line)
                if data:
                    asked = json.loads(data[1])["rows"]
                    break
            while not _listens(port):
                time.sleep(0.02)
        ready = time.perf_counter() - began
        headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Idempotency-Key": os.urandom(8).hex(),
        }
        body = json.dumps({"rows": asked})
        answer = _status(port, "POST", f"/v1/bundles/{bundle}/answers", body, headers)
        answered = time.perf_counter() - began
        page = _status(port, "GET", "/dashboard", None, {})
        shown = time.perf_counter() - began
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
        print(
            f"{name:13}: listens after {ready:.1f} s, first answer ({answer}) after "
            f"{answered:.1f} s, first page ({page}) after {shown:.1f} s"
        )


def memory(folder: Path, url: str, secret: str, rows: np.ndarray, requests: int) -> None:
    """The largest process after each tenth of many requests."""
    server = Server(folder, url, 1)
    sizes, answered = [], 0
    try:
        while answered < requests:
            seen = ask_for(server, secret, rows[:1].tolist(), clients=32, seconds=5.0)
            answered += len(seen.times.get(200, []))
            if answered >= (len(sizes) + 1) * requests / 10:
                sizes.append(server.memory())
    finally:
        server.stop()
    print(f"memory: {' '.join(f'{size:.0f}' for size in sizes)} MiB over {answered} requests")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
        return found


def _listens(port: int) -> bool:
    try:
        return _status(port, "GET", "/healthz", None, {}) == 200
    except (OSError, HTTPException):
        return False


def _status(port: int, method: str, path: str, body: str | None, headers: dict[str, str]) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def _statuses(seen: Loaded) -> dict[int, int]:
    return {status: len(times) for status, times in sorted(seen.times.items())}


if __name__ == "__main__":
    main()
