"""The built site, once for all workers, and a browser without a network."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Page, chromium

ROOT = Path(__file__).parents[2]

_WAIT = 540


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the site, built by the command of the README; a warning fails it."""
    pytest.importorskip("sphinx")
    pytest.importorskip("torch")

    # Workers of one run share the folder above their own.
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if own.name.startswith("popen-") else own
    folder, verdict = shared / "site", shared / "site.json"
    try:
        (shared / "site.lock").mkdir()
    except FileExistsError:
        begun = time.monotonic()
        while not verdict.exists() and time.monotonic() - begun < _WAIT:
            time.sleep(0.5)
    else:
        # A process of its own: here every warning of Python is an error, Sphinx's own too.
        command = [sys.executable, "-m", "guide.build", "--out", str(folder)]
        built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        verdict.write_text(json.dumps([built.returncode, built.stdout + built.stderr]))
    status, said = json.loads(verdict.read_text())
    assert status == 0, said
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of a real browser without a network."""
    with chromium(tmp_path_factory.mktemp("browser") / "profile") as found:
        yield found
