"""The proxy that is shipped, started as Debian's nginx on ports and files of a test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machine import free_port, wait_until

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "nginx.conf"


@dataclass(frozen=True)
class Proxy:
    """A proxy that listens on ``port``.

    Attributes:
        process: identifier of its first process.
        certificate: file; "" where it takes plain http.
    """

    port: int
    process: int
    certificate: str

    def processes(self) -> list[int]:
        """Identifiers of all its processes."""
        children = Path(f"/proc/{self.process}/task/{self.process}/children").read_text()
        return [self.process, *map(int, children.split())]


@contextmanager
def proxied(service: int, folder: Path, *, secure: bool = False) -> Iterator[Proxy]:
    """The shipped configuration in front of the service on a port of this machine.

    Only ports and files differ from it; and without ``secure`` it takes plain http.
    """
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        reason = "no nginx here: install Debian's package nginx-light"
        if os.environ.get("CI") == "true" or "nginx" in os.environ.get("RETICENT_NEEDS", ""):
            pytest.fail(reason)
        pytest.skip(reason)
    port = free_port()
    certificate, key = folder / "certificate.pem", folder / "certificate-key.pem"
    if secure:
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        subprocess.run(
            [
                *command.split(),
                *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
                *("-keyout", key, "-out", certificate),
            ],
            check=True,
            capture_output=True,
        )
    listen = f"listen 127.0.0.1:{port} {'ssl ' if secure else ''}"
    changes = [
        ("127.0.0.1:8000", f"127.0.0.1:{service}"),
        ("listen 8443 ssl ", listen),
        ("/etc/reticent/certificate-key.pem", str(key)),
        ("/etc/reticent/certificate.pem", str(certificate)),
        ("/run/reticent-nginx.pid", str(folder / "nginx.pid")),
    ]
    text = CONFIGURATION.read_text()
    for shipped, here in changes:
        assert text.count(shipped) == 1, shipped
        text = text.replace(shipped, here)
    if not secure:
        text = "\n".join(line for line in text.splitlines() if "ssl_" not in line)
    made = folder / "nginx.conf"
    made.write_text(text)
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen([nginx, "-c", made, "-g", "daemon off;"], stdout=log, stderr=log)
        try:
            wait_until(lambda: (folder / "nginx.pid").exists() or process.poll() is not None, 30)
            assert process.poll() is None, (folder / "nginx.log").read_text()
            yield Proxy(port, process.pid, str(certificate) if secure else "")
        finally:
            process.terminate()
            process.wait(20)
