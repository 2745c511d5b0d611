"""The unit file names what there is, and the script serves from a fresh folder, twice."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest
import typer.main

from reticent.cli.main import app
from reticent.core import AddRemove, Guarantee, Scope
from reticent.ledger import Ledger
from reticent.service.keys import KeyStore
from tests.machine import free_port, is_healthy, wait_until
from tests.service.conftest import RECORDS, served_bundles

__all__ = ["served_bundles"]

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_unit_starts_a_command_that_there_is() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "reticent.service")
    program, command, *options = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "reticent"
    known = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    names = {name for parameter in known.params for name in parameter.opts}
    assert {option for option in options if option.startswith("--")} <= names
    assert int(unit["Service"]["TimeoutStopSec"]) > 30
    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        done = subprocess.run(
            [analyze, "verify", "--man=no", str(DEPLOY / "reticent.service")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert not re.search("Unknown|Failed to parse|Invalid", done.stderr), done.stderr


@pytest.mark.slow
@pytest.mark.postgres
def test_the_script_serves_from_a_fresh_folder_and_goes_on_with_it(
    served_bundles: Path,
) -> None:
    if not (shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb"))):
        pytest.skip("no PostgreSQL server here: install Debian's package postgresql")
    pytest.importorskip("psycopg")
    # Not in pytest's own folder, which the user who runs the database may not enter.
    with tempfile.TemporaryDirectory(prefix="deployed", dir="/tmp") as name:
        Path(name).chmod(0o711)
        told = serve_twice(Path(name), served_bundles)
        assert len(told) == 10
        assert {status for status, _ in told} == {200}
        assert len({body for _, body in told}) == 1  # also from the second run
        assert (Path(name) / "new" / "signing-key.pem").stat().st_mode & 0o077 == 0
        assert not (Path(name) / "new" / "database" / "postmaster.pid").exists()


def serve_twice(folder: Path, served_bundles: Path) -> list[tuple[int, bytes]]:
    """Runs the script, asks for one thing five times, stops it; and again. What was told."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    secret = ""
    found: list[tuple[int, bytes]] = []
    urls = set()
    for _ in range(2):
        process = subprocess.Popen(
            [
                DEPLOY / "serve_with_postgres.sh",
                folder / "new",
                served_bundles,
                *("--port", str(port), "--workers", "1"),
            ],
            env={**os.environ, "RETICENT": f"{sys.executable} -m reticent"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("ledger: ").strip()
            assert url.startswith("postgresql://")
            urls.add(url)
            socket_file = folder / "new" / "sockets" / ".s.PGSQL.5432"
            assert socket_file.stat().st_mode & 0o077 == 0  # the database asks for no password
            if not secret:
                ledger = Ledger.open(url)
                total = Guarantee(10.0, 0.0, AddRemove(1, data_set=RECORDS))
                ledger.grant(Scope(subject=RECORDS), total)
                _, secret = KeyStore(ledger).create("acme", bundles=["labels"], subjects=[RECORDS])
                ledger.close()
            headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": "request-1"}
            wait_until(
                lambda process=process: is_healthy(address) or process.poll() is not None, 120
            )
            with httpx.Client(base_url=address, headers=headers) as client:
                for _ in range(5):
                    told = client.post(
                        "/v1/bundles/labels/answers", json={"rows": [[0.3, 0.2]]}, timeout=60
                    )
                    found.append((told.status_code, told.content))
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
            process.stdout.close()
    assert len(urls) == 1  # what budgets are granted and keys are made with
    return found
