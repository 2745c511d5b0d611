"""The built site: every public name has its place, and links lead somewhere."""

from __future__ import annotations

import importlib
import re
import zlib
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from guide import api
from tests.test_public_api import PUBLIC

pytestmark = pytest.mark.slow


def inventory(site: Path) -> dict[str, str]:
    """Dotted name to page of everything that the reference describes."""
    packed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(packed).decode().splitlines()
    rows = [line.split(" ", 4) for line in lines]
    return {row[0]: row[3] for row in rows if row[1].startswith("py:")}


def test_every_public_name_is_described(site: Path) -> None:
    known = inventory(site)
    identities = {}
    for name in known:
        package, _, last = name.rpartition(".")
        if re.fullmatch(r"reticent(\.[a-z_]+)?", package):
            identities[id(getattr(importlib.import_module(package), last))] = name
    missing = [
        f"{package}.{name}"
        for package, names in PUBLIC.items()
        if package.removeprefix("reticent.") not in api.INTERNAL
        for name in names
        if id(getattr(importlib.import_module(package), name)) not in identities
    ]
    assert missing == []


def broken_links(folder: Path) -> list[tuple[str, str]]:
    """(page, target) of every link that leads nowhere, anchors too, or loads from elsewhere."""
    pages = {path: path.read_text(encoding="utf-8") for path in folder.glob("**/*.html")}
    places = {
        path: set(re.findall(r'\bid="([^"]+)"', text)) | set(re.findall(r'\bname="([^"]+)"', text))
        for path, text in pages.items()
    }
    broken = []
    for path, text in pages.items():
        for kind, target in re.findall(r'\b(href|src)="([^"]*)"', text):
            parts = urlsplit(unescape(target))
            if parts.scheme in ("https", "mailto", "data") and kind == "href":
                continue
            if parts.scheme or parts.netloc:
                broken.append((path.name, target))
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not aim.exists() or (anchor and aim in places and anchor not in places[aim]):
                broken.append((path.name, target))
    return broken


def test_links_lead_somewhere(site: Path) -> None:
    assert len(list(site.glob("**/*.html"))) > 300
    assert broken_links(site) == []
