"""Servers for tests: real uvicorn processes, which a process that has imported everything forks
before it holds anything, so that each starts in a moment.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from reticent.service import connections
from reticent.service.app import create_app
from reticent.service.edge import LONGEST_HEAD
from reticent.service.logs import configure
from reticent.service.settings import Settings

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "tests.service.servers",
        "reticent.cli.main",
        "reticent.service.fleet",
        "reticent.systems.certified.reserve_system",
        "reticent.systems.power.code_encoder",
        "reticent.systems.power.encoder",
        "reticent.systems.votes.noisy_gradient",
        "sqlalchemy.dialects.sqlite",
        "prometheus_client",
    ]
)


class Running:
    """A server that answers.

    Attributes:
        url: where.
        log: everything that it wrote.
    """

    def __init__(self, process: BaseProcess, port: int, log: Path) -> None:
        self.process, self.url, self.log = process, f"http://127.0.0.1:{port}", log
        self.port = port
        self.clients: list[httpx.Client] = []

    def kill(self) -> None:
        """As the machine would: at once, in the middle of anything."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()

    def stop(self) -> int | None:
        """As an operator would; the exit status."""
        self.process.terminate()
        self.process.join(20)
        return self.process.exitcode

    def client(self, secret: str, **options: Any) -> httpx.Client:
        """A client with a key, closed with the server."""
        headers = {"Authorization": f"Bearer {secret}"}
        found = httpx.Client(base_url=self.url, headers=headers, timeout=30, **options)
        self.clients.append(found)
        return found


@contextmanager
def running(settings: Settings, log: Path) -> Iterator[Running]:
    """A server in a process of its own, which is gone afterwards."""
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_serve, args=(settings.model_dump_json(), str(log), sender))
    process.start()
    sender.close()
    try:
        assert receiver.poll(60), "the server did not start"
        server = Running(process, receiver.recv(), log)
        try:
            yield server
        finally:
            for client in server.clients:
                client.close()
    finally:
        receiver.close()
        if process.is_alive():
            process.kill()
        process.join()


def command_process(command: list[str], log: Path) -> BaseProcess:
    """A process that runs a command of `reticent`, and has imported what servers need."""
    process = _CONTEXT.Process(target=_run, args=(command, str(log)))
    process.start()
    return process


def _run(command: list[str], log: str) -> None:
    from reticent.cli.main import run

    _log_to(log)
    sys.exit(run(command))


def start_is_refused(settings: Settings, log: Path) -> str:
    """What a server says that does not start."""
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_serve, args=(settings.model_dump_json(), str(log), sender))
    process.start()
    sender.close()
    process.join(60)
    assert process.exitcode == 1
    with contextlib.suppress(EOFError):
        assert not receiver.poll(0) or not receiver.recv()
    receiver.close()
    return log.read_text()


def _serve(settings: str, log: str, ready: Connection) -> None:
    _log_to(log)
    known = Settings.model_validate_json(settings)
    configure(known.level)
    app = create_app(known)
    listening = socket.socket()
    listening.bind((known.host, known.port))
    listening.listen(512)
    config = uvicorn.Config(
        app,
        http=connections.Door.of(known),  # type: ignore[arg-type]
        h11_max_incomplete_event_size=LONGEST_HEAD,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    ready.send(listening.getsockname()[1])
    uvicorn.Server(config).run(sockets=[listening])


def _log_to(log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, sys.stderr.fileno())
    os.dup2(descriptor, 1)
