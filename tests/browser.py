"""A real Chromium, driven over a pipe by its own protocol: no driver, no port, no package, and no
network but that of this machine.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-extensions",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_PATIENCE = 60.0

WIDTHS = (1200, 390)
"""Pixels of the windows that pages are looked at in: on a screen and on a telephone."""

_MEASURE = """
(async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  const drawn = [...document.querySelectorAll('mjx-container svg')];
  return {
    written: document.querySelectorAll('.math').length,
    typeset: drawn.filter(e => e.getBoundingClientRect().width > 0).length,
    refused: document.querySelectorAll('mjx-merror').length,
    wide: document.documentElement.scrollWidth,
    missing: [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src),
  };
})()
"""
_KEYS = {"Tab": 9, "Enter": 13, " ": 32}


class Page:
    """One page of a browser.

    Attributes:
        requests: addresses of everything that was loaded.
        problems: what the browser complained about: errors of the console and of the policy.
    """

    def __init__(self, out: int, into: int) -> None:
        self._out, self._into, self._number, self._rest = out, into, 0, b""
        self._events: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.problems: list[str] = []
        target = self._call("Target.createTarget", {"url": "about:blank"}, session=None)
        attached = self._call(
            "Target.attachToTarget",
            {"targetId": target["targetId"], "flatten": True},
            session=None,
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self._call(f"{domain}.enable")

    def size(self, width: int, height: int = 900) -> None:
        """Gives the window a size, in pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._call("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, url: str) -> None:
        """Opens an address, and waits until it is there."""
        self._events.clear()
        self._call("Page.navigate", {"url": url})
        self.wait()

    def wait(self) -> None:
        """Until the next page has loaded."""
        self._until("Page.loadEventFired")

    def run(self, expression: str) -> Any:
        """The value of an expression in the page, or what it promises."""
        found = self._call(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": True},
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def faults(self, path: Path, width: int) -> list[str]:
        """What is wrong with a page on disk in a window of ``width`` pixels: parts that stick out,
        missing pictures, errors, formulas that are not typeset, requests to anywhere else.
        """
        self.problems.clear()
        self.requests.clear()
        self.size(width)
        self.open(f"file://{path}")
        found = self.run(_MEASURE)
        wrong = [f"missing picture {source}" for source in found["missing"]]
        wrong += [f"error: {problem}" for problem in self.problems]
        wrong += [
            f"loads {address}"
            for address in self.requests
            if not address.startswith(("file:", "data:"))
        ]
        if found["wide"] > width:
            wrong.append(f"{found['wide']} pixels wide")
        if found["typeset"] != found["written"] or found["refused"]:
            wrong.append(f"formulas: {found}")
        return wrong

    def press(self, key: str) -> None:
        """Presses a key."""
        code = _KEYS[key]
        text = {"Enter": "\r", " ": " "}.get(key, "")
        base = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self._call("Input.dispatchKeyEvent", {"type": "keyDown", "text": text, **base})
        self._call("Input.dispatchKeyEvent", {"type": "keyUp", **base})

    def write(self, text: str) -> None:
        """Types text where the focus is."""
        self._call("Input.insertText", {"text": text})

    def focus(self) -> str:
        """What has the focus: its tag, and its text or name."""
        found: str = self.run(
            "(e => e.tagName + ' ' + (e.name || e.getAttribute('aria-label') || e.innerText || '')"
            ".trim())(document.activeElement)"
        )
        return found

    def cookies(self) -> list[dict[str, Any]]:
        """All cookies, also those that scripts may not read."""
        found: list[dict[str, Any]] = self._call("Network.getCookies")["cookies"]
        return found

    def _call(
        self, method: str, values: dict[str, Any] | None = None, session: str | None = ""
    ) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": values or {}}
        if session is not None:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        latest = time.monotonic() + _PATIENCE
        while True:
            found = self._read(latest)
            if found.get("id") == self._number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result
            self._note(found)

    def _until(self, method: str) -> None:
        latest = time.monotonic() + _PATIENCE
        while not any(event["method"] == method for event in self._events):
            self._note(self._read(latest))
        self._events.clear()

    def _note(self, event: dict[str, Any]) -> None:
        method, values = event.get("method"), event.get("params", {})
        self._events.append({"method": method})
        if method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.problems.append(values["entry"]["text"])
        elif method == "Runtime.exceptionThrown" or (
            method == "Runtime.consoleAPICalled" and values["type"] == "error"
        ):
            self.problems.append(str(values))

    def _read(self, latest: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left = latest - time.monotonic()
            assert left > 0, "the browser did not answer"
            ready, _, _ = select.select([self._out], [], [], left)
            assert ready, "the browser did not answer"
            piece = os.read(self._out, 2**20)
            assert piece, "the browser has ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """A browser with a fresh profile, and a page in it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((found for name in names if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no chromium on this machine: the pages were not opened in a browser")
    read_commands, into = os.pipe()
    out, write_answers = os.pipe()
    shell = f'exec "$0" "$@" 3<&{read_commands} 4>&{write_answers}'
    process = subprocess.Popen(
        ["bash", "-c", shell, program, *_QUIET, f"--user-data-dir={profile}"],
        pass_fds=(read_commands, write_answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
    )
    os.close(read_commands)
    os.close(write_answers)
    try:
        yield Page(out, into)
    finally:
        os.close(into)
        process.terminate()
        process.wait(timeout=20)
        os.close(out)
