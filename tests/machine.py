"""What tests ask of the machine: ports, memory, disks that are full, and patience."""

from __future__ import annotations

import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def is_healthy(address: str) -> bool:
    """Whether a service answers there, and can charge."""
    try:
        with urlopen(f"{address}/healthz", timeout=30) as told:
            return bool(told.status == 200)
    except OSError:
        return False


def wait_until(done: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a call says yes, and fail if that takes longer."""
    latest = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < latest
        time.sleep(0.005)


def peak_memory(process: int | None) -> int:
    """The most bytes that a process has had."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """What a full disk looks like to a writer: no file may grow beyond so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
