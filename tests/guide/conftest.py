"""The built site, once for all workers, and a browser that can reach nothing but it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

_WAIT = 540


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder of the site, built by the command of the README; a warning fails it."""
    pytest.importorskip("sphinx")
    pytest.importorskip("torch")
    import os  # TEMP

    from guide.build import build

    if os.environ.get("TEMP_SITE"):  # TEMP
        yield Path(os.environ["TEMP_SITE"])  # TEMP
        return  # TEMP

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
        status = -1
        try:
            status = build(folder)
        finally:
            verdict.write_text(json.dumps(status))
    assert json.loads(verdict.read_text()) == 0, "the site does not build without warnings"
    yield folder


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
        waits = (
            "<script>addEventListener('load',()=>setTimeout(()=>{const measured=(()=>{"
            + script
            + "})();const out=document.createElement('pre');out.id='measured';"
            "out.textContent=JSON.stringify(measured);document.body.append(out)},3000))</script>"
        )
        text = page.read_text(encoding="utf-8")
        probed.write_text(text.replace("</body>", waits + "</body>"), encoding="utf-8")
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
                    f"--window-size={width},900",
                    "--virtual-time-budget=20000",
                    "--dump-dom",
                    f"file://{probed}{query}",
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
