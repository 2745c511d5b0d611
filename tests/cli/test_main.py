"""Every way to end: a status, one line on standard error at most, and nothing half written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reticent.cli import bundles, main


def test_an_unforeseen_fault_shows_neither_message_nor_traceback(command, monkeypatch, tmp_path):
    def fault(*asked, **more):
        raise RuntimeError("row 7 is [0.25, 0.75]")

    monkeypatch.setattr(bundles, "open_bundle", fault)
    answer = command("card", tmp_path, "--json")
    assert answer.status == 70
    assert answer.err.startswith("error: internal error (RuntimeError)")
    assert "0.25" not in answer.err
    assert answer.err.count("\n") == 1
    monkeypatch.setenv(main.TRACEBACK_VARIABLE, "1")
    with pytest.raises(RuntimeError):
        command("card", tmp_path, "--json")


WRITES = """
    with output_file(folder / "answers.npz", size=2**20, overwrite=False):
        print("ready", flush=True)
        time.sleep(60)
"""
SERVES = """
    import uvicorn
    async def ready(scope, receive, send):
        print("ready", flush=True)
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
    with tempfile.TemporaryDirectory(dir=folder):
        uvicorn.run(ready, port=0, log_level="critical")
"""
COMMAND = """
import sys, tempfile, time
from pathlib import Path
from reticent.cli import main
from reticent.core.files import output_file

@main.app.command()
def held(folder: Path) -> None:
    {body}

main.main()
"""


@pytest.mark.parametrize("body", [WRITES, SERVES], ids=["writes", "serves"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_nothing_behind(body: str, number: signal.Signals, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(COMMAND.format(body=body.strip()))
    folder = tmp_path / "folder"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, program, "held", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert list(folder.iterdir()) != []
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert list(folder.iterdir()) == []
    assert "Traceback" not in said
    # An operator's SIGTERM is told by the status of a process that it ended, which is no failure.
    assert process.returncode in ((-signal.SIGTERM,) if number == signal.SIGTERM else (0, 130))
