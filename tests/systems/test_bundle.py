"""Bundles: whole or not at all, and every byte checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.systems import Bundle


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    arrays = {"weight": np.arange(6.0).reshape(2, 3), "steps": np.arange(3)}
    return Bundle("Nothing", {"radius": 0.5, "names": ["a", "b"]}, arrays, "# card\n").write(tmp_path / "one")


def test_round_trip_keeps_everything(stored: Path) -> None:
    read = Bundle.read(stored)
    assert read.system == "Nothing"
    assert read.settings == {"radius": 0.5, "names": ["a", "b"]}
    np.testing.assert_array_equal(read.arrays["weight"], np.arange(6.0).reshape(2, 3))
    assert read.arrays["steps"].dtype == np.int64
    assert read.card == "# card\n"
    assert sorted(path.name for path in stored.iterdir()) == ["bundle.json", "card.md", "weights.safetensors"]


def test_a_bundle_of_another_system_is_refused_where_one_is_expected(stored: Path) -> None:
    assert Bundle.read(stored, system="Nothing").identity == Bundle.read(stored).identity
    with pytest.raises(InvalidInput, match=r"one'.*: holds a Nothing, expected a Something"):
        Bundle.read(stored, system="Something")


def test_identity_is_of_what_decides_an_answer(stored: Path) -> None:
    base = Bundle.read(stored)
    changed = [
        Bundle("Other", base.settings, base.arrays, base.card),
        Bundle(base.system, {**base.settings, "radius": 0.6}, base.arrays, base.card),
        Bundle(base.system, base.settings, {**base.arrays, "weight": base.arrays["weight"] + 1e-12}, base.card),
        Bundle(base.system, base.settings, {"weights": base.arrays["weight"], "steps": base.arrays["steps"]}, base.card),
    ]
    assert len({bundle.identity for bundle in [base, *changed]}) == 5
    assert Bundle.read(stored).identity == base.identity
    assert Bundle(base.system, base.settings, base.arrays, "# clearer words\n").identity == base.identity


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


@pytest.mark.parametrize("name", ["weights.safetensors", "card.md"])
def test_one_flipped_bit_is_found(stored: Path, name: str) -> None:
    content = bytearray((stored / name).read_bytes())
    content[len(content) // 2] ^= 1
    (stored / name).write_bytes(bytes(content))
    with pytest.raises(CorruptBundle, match=f"{name} does not match"):
        Bundle.read(stored)


@pytest.mark.parametrize("name", ["bundle.json", "weights.safetensors", "card.md"])
def test_a_missing_or_cut_file_is_found(stored: Path, name: str) -> None:
    whole = (stored / name).read_bytes()
    (stored / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptBundle):
        Bundle.read(stored)
    (stored / name).unlink()
    with pytest.raises(CorruptBundle, match="cannot be read"):
        Bundle.read(stored)


def test_another_format_or_version_is_refused(stored: Path) -> None:
    head = json.loads((stored / "bundle.json").read_text())
    (stored / "bundle.json").write_text(json.dumps({**head, "version": 99}))
    with pytest.raises(CorruptBundle, match="version 1"):
        Bundle.read(stored)
    (stored / "bundle.json").write_text("[]")
    with pytest.raises(CorruptBundle):
        Bundle.read(stored)


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


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="found none"):
        Bundle.read(tmp_path / "nowhere")
