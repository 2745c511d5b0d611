"""The built site, once for all workers, and a browser that can reach nothing but it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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


Look = Callable[..., dict[str, Any]]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Opens a page from disk in a browser without a network, and returns what a script measured."""
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if browser is None:
        pytest.skip("no chromium on this machine: the site was not opened in a browser")

    def opened(page: Path, script: str, *, query: str = "", width: int = 1280) -> dict[str, Any]:
        """What ``script``, the body of a function, returns once all is still."""
        probed = page.with_name(f"probed-{page.name}")
        probe = (
            "<script>addEventListener('load',()=>setTimeout(()=>parent.postMessage("
            f"JSON.stringify((()=>{{{script}}})()),'*'),3000))</script>"
        )
        text = page.read_text(encoding="utf-8")
        probed.write_text(text.replace("</body>", probe + "</body>"), encoding="utf-8")
        # A window is never narrower than 500 pixels; a frame is as narrow as a telephone.
        frame = tmp_path / "frame.html"
        frame.write_text(
            "<!doctype html><pre id='measured'></pre><script>addEventListener('message',"
            "e=>{document.getElementById('measured').textContent=e.data})</script>"
            f"<iframe src='file://{probed}{query}' width='{width}' height='900'></iframe>"
        )
        try:
            shown = subprocess.run(
                [
                    browser,
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-extensions",
                    "--disable-background-networking",
                    "--host-resolver-rules=MAP * ~NOTFOUND",
                    f"--user-data-dir={tmp_path / 'profile'}",
                    "--window-size=1400,1000",
                    "--virtual-time-budget=20000",
                    "--dump-dom",
                    f"file://{frame}",
                ],
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
        finally:
            probed.unlink()
        found = re.search(r'<pre id="measured">(.*?)</pre>', shown.stdout, re.S)
        assert found, shown.stderr[-2000:]
        measured: dict[str, Any] = json.loads(
            found[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
        )
        return measured

    return opened
