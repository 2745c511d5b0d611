"""Bundles: whole or not at all, and every byte checked."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.release import Bundle


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    arrays = {"weight": np.arange(6.0).reshape(2, 3), "steps": np.arange(3)}
    return Bundle("Nothing", {"radius": 0.5, "names": ["a", "b"]}, arrays, "# card\n").write(
        tmp_path / "one"
    )


def test_identity_is_of_what_decides_an_answer(stored: Path) -> None:
    base = Bundle.read(stored)
    changed = [
        Bundle("Other", base.settings, base.arrays, base.card),
        Bundle(base.system, {**base.settings, "radius": 0.6}, base.arrays, base.card),
        Bundle(
            base.system,
            base.settings,
            {**base.arrays, "weight": base.arrays["weight"] + 1e-12},
            base.card,
        ),
        Bundle(
            base.system,
            base.settings,
            {"weights": base.arrays["weight"], "steps": base.arrays["steps"]},
            base.card,
        ),
    ]
    assert len({bundle.identity for bundle in [base, *changed]}) == 5
    assert Bundle.read(stored).identity == base.identity
    assert (
        Bundle(base.system, base.settings, base.arrays, "# clearer words\n").identity
        == base.identity
    )


def test_a_serial_stands_for_weights_that_are_private(stored: Path) -> None:
    base = Bundle.read(stored)
    named = replace(base, serial="1a2b")
    other = replace(named, arrays={**base.arrays, "weight": base.arrays["weight"] + 1.0})
    again = replace(base, serial="3c4d")
    setting = replace(base, settings={"serial": "1a2b"})
    assert setting.identity != replace(setting, arrays=other.arrays).identity
    assert named.identity == other.identity
    assert len({base.identity, named.identity, again.identity}) == 3
    assert Bundle.read(named.write(stored.parent / "named")).identity == named.identity


@pytest.mark.parametrize("name", ["bundle.json", "card.md", "manifest.json", "weights.safetensors"])
def test_a_flipped_bit_of_every_byte_and_another_length_are_found(stored: Path, name: str) -> None:
    whole = (stored / name).read_bytes()
    for place in range(len(whole)):
        content = bytearray(whole)
        content[place] ^= 1 << place % 8
        (stored / name).write_bytes(bytes(content))
        with pytest.raises(CorruptBundle):
            Bundle.read(stored)
    for changed in (whole[:-1], whole + b" ", whole + whole, b""):
        (stored / name).write_bytes(changed)
        with pytest.raises(CorruptBundle):
            Bundle.read(stored)


def seal(folder: Path, **changes: object) -> None:
    """Writes the manifest that fits the files, by hand."""
    files = {
        name: {
            "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
            "bytes": (folder / name).stat().st_size,
        }
        for name in ("bundle.json", "card.md", "weights.safetensors")
    }
    identity = json.loads((folder / "manifest.json").read_text())["identity"]
    manifest = {
        "format": "reticent-bundle",
        "version": 2,
        "identity": identity,
        "files": files,
        **changes,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def test_the_format_is_the_documented_one(stored: Path) -> None:
    before = (stored / "manifest.json").read_bytes()
    seal(stored)
    assert (stored / "manifest.json").read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        {"identity": "0" * 64},
        {"identity": 3},
        {"version": 1},
        {"format": "zip"},
        {"extra": 1},
        {"files": {}},
        {"files": None},
    ],
)
def test_a_manifest_that_states_something_else_is_refused(
    stored: Path, change: dict[str, object]
) -> None:
    seal(stored, **change)
    with pytest.raises(CorruptBundle):
        Bundle.read(stored)


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b'"radius": 0.5', b'"radius": NaN'),
        lambda text: text.replace(b'"radius": 0.5', b'"radius": 1e999'),
        lambda text: text.replace(b'"radius": 0.5', b'"radius": ' + b"9" * 30),
        lambda text: text.replace(b'"radius": 0.5', b'"radius": ' + b"9" * 5000),
        lambda text: text.replace(b'"radius": 0.5', b'"radius": 0.50'),
        lambda text: text.replace(b'"radius": 0.5', b'"radius": 0.25,\n    "radius": 0.5'),
        lambda text: text.replace(b'"radius": 0.5', b'"radius": ' + DEEP),
        lambda text: text.replace(b'"serial": ""', b'"serial": 1'),
        lambda text: text.replace(b'"serial": ""', b'"serial": "\\ud800"'),
        lambda text: text.replace(b'"version": 2', b'"version": 1'),
        lambda text: text.replace(b'"version": 2', b'"version": 2,\n  "wishes": []'),
        lambda text: text.replace(b'"system": "Nothing"', b'"system": null'),
        lambda text: b"[]\n",
        lambda text: b"\xff\n",
        lambda text: text.replace(b"\n", b"\r\n"),
    ],
)
def test_settings_have_one_spelling_and_no_more_than_json(
    stored: Path, change: Callable[[bytes], bytes]
) -> None:
    text = (stored / "bundle.json").read_bytes()
    assert change(text) != text
    (stored / "bundle.json").write_bytes(change(text))
    seal(stored)
    with pytest.raises(CorruptBundle):
        Bundle.read(stored)


@pytest.mark.parametrize("mask", [0o022, 0o777])
def test_a_private_bundle_is_its_owners_alone_whatever_the_umask(
    stored: Path, tmp_path: Path, mask: int
) -> None:
    before = os.umask(mask)
    try:
        private = replace(Bundle.read(stored), serial="1a2b").write(tmp_path / "private")
        public = Bundle.read(stored).write(tmp_path / "public") if mask != 0o777 else None
    finally:
        os.umask(before)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in private.iterdir()} == {0o600}
    if public is not None:
        assert stat.S_IMODE(public.stat().st_mode) == 0o777 & ~mask
        assert {stat.S_IMODE(path.stat().st_mode) for path in public.iterdir()} == {0o666 & ~mask}


def test_a_bundle_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"card\.md takes 1048577 bytes"):
        Bundle("New", {}, {}, "x" * (2**20 + 1)).write(tmp_path / "new")
    with pytest.raises(InvalidInput, match="levels of nesting"):
        Bundle("New", {"deep": json.loads(b"[" * 70 + b"]" * 70)}, {}, "").write(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_overwrites_only_bundles_and_only_when_asked(stored: Path, tmp_path: Path) -> None:
    bundle = Bundle("New", {}, {"x": np.zeros(1)}, "")
    with pytest.raises(InvalidInput, match="exists already"):
        bundle.write(stored)
    bundle.write(stored, overwrite=True)
    assert Bundle.read(stored).system == "New"
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidInput, match="will not be replaced"):
        bundle.write(precious, overwrite=True)
    assert (precious / "thesis.tex").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "precious"]
