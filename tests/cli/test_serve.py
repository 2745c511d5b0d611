"""`reticent serve` as a command: the demonstration, several workers, and what is refused."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from reticent.cli.main import run
from tests.machine import free_port, is_healthy, wait_until


@pytest.mark.slow
def test_the_demonstration_starts_prints_a_snippet_that_works_and_stops(tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "reticent",
            "serve",
            "--demo",
            "--port",
            str(port),
            "--workers",
            "2",
        ],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stderr is not None
    try:
        said = ""
        while "owner's key" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        body = re.search(r"-d '(.*)'", said)
        secret = re.search(r"Bearer (reticent_[\w-]+)", said)
        assert body is not None
        assert secret is not None
        address = f"http://127.0.0.1:{port}"
        assert f"{address}/v1/bundles/blobs/answers" in said
        wait_until(lambda: is_healthy(address) or process.poll() is not None, 240)
        headers = {"Authorization": f"Bearer {secret[1]}", "Content-Type": "application/json"}
        for number in range(4):  # whichever worker is asked
            told = httpx.post(
                f"{address}/v1/bundles/blobs/answers",
                content=body[1],
                headers=headers | {"Idempotency-Key": f"request-{number}"},
                timeout=60,
            )
            assert told.status_code == 200, told.text
            assert len(told.json()["answers"]) == 3
        left = httpx.get(f"{address}/v1/budget", headers=headers).json()["budgets"][0]["left"]
        assert left["epsilon"] == 500 - 12
        owner = re.search(r"owner's key.*: (reticent_[\w-]+)", said)
        assert owner is not None
        page = httpx.get(f"{address}/metrics", headers={"Authorization": f"Bearer {owner[1]}"}).text
        assert 'reticent_rows_answered_total{bundle="blobs"} 12.0' in page
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
        assert rest.count('"event": "stopped"') == 2
        assert list(tmp_path.iterdir()) == []  # nothing is left of it
    finally:
        process.kill()
        process.stderr.close()
        process.wait()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "bundles: Field required"),
        (["--demo", "--ledger", "x.db"], 2, "demo: makes its own"),
        (["--config", "nothing.toml"], 2, "cannot be read"),
        (["--bundles", "b", "--ledger", "l.db", "--signing-key", "k.pem"], 2, "key="),
        (["--bundles", "b", "--ledger", "l.db", "--signing-key", "k.pem", "--workers", "0"], 2, ""),
    ],
)
def test_what_is_wrong_is_said_before_anything_listens(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    status: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reticent.service.server.configure", lambda level: None)
    assert run(["serve", *arguments]) == status
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert said in told
    assert len(told.splitlines()) == 1
