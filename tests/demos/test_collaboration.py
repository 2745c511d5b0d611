"""Three processes that share a folder of public files, and nothing else; the auditor finds what a
device or somebody on the way has changed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_iris

from reticent.client import Device
from reticent.core import Guarantee
from reticent.datasets import load_adult_sample
from reticent.demos.collaboration import (
    EPSILON,
    EXPORT,
    SENT,
    Settings,
    audit,
    run_demo,
    summary,
)
from tests.client.conftest import rows_bundle

__all__ = ["rows_bundle"]


@pytest.fixture(scope="module")
def shown(
    rows_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Guarantee, str]:
    """What a device shows after five persons asked once each."""
    home = tmp_path_factory.mktemp("home")
    persons = [f"person-{number}" for number in range(5)]
    with Device(rows_bundle, home=home) as device:
        for person in persons:
            device.grant(person, epsilon=4.0, delta=0.0)
        release = device.release(load_iris().data[:5], subject=persons)
        device.ledger.export(home / EXPORT, format="jsonl", overwrite=True)
        sent = {"receipts": [release.receipt.to_dict()], "values": release.values.tolist()}
        (home / SENT).write_text(json.dumps(sent))
        return home, device.guarantee, device.bundle


def test_an_honest_device_passes(shown: tuple[Path, Guarantee, str]) -> None:
    found = audit(*shown)
    assert found["problems"] == []
    assert (found["answers"], found["sent"], found["spent"], found["most"]) == (5, 5, 20.0, 4.0)


def sent_more(sent: dict[str, Any]) -> None:
    sent["values"].append(sent["values"][0])


def another_guarantee(sent: dict[str, Any]) -> None:
    sent["receipts"][0]["guarantee"]["epsilon"] = 1.0


def another_entry(sent: dict[str, Any]) -> None:
    sent["receipts"][0]["digest"] = "0" * 64


def seeded(sent: dict[str, Any]) -> None:
    sent["receipts"][0]["seeded"] = True


def not_booked(sent: dict[str, Any]) -> None:
    sent["receipts"] = []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (sent_more, "6 values were sent, and 5 answers were charged"),
        (another_guarantee, "is for something else"),
        (another_entry, "is not in the export"),
        (seeded, "is for something else"),
        (not_booked, "5 values were sent"),
    ],
)
def test_what_was_sent_without_a_charge_is_found(
    shown: tuple[Path, Guarantee, str],
    tmp_path: Path,
    change: Callable[[dict[str, Any]], None],
    problem: str,
) -> None:
    home, guarantee, bundle = shown
    sent = json.loads((home / SENT).read_text())
    change(sent)
    shutil.copy(home / EXPORT, tmp_path)
    (tmp_path / SENT).write_text(json.dumps(sent))
    assert any(problem in said for said in audit(tmp_path, guarantee, bundle)["problems"])


@pytest.mark.parametrize(("field", "value"), [("epsilon", 1), ("answers", 9), ("subject", "x")])
def test_a_changed_export_is_found(
    shown: tuple[Path, Guarantee, str], tmp_path: Path, field: str, value: Any
) -> None:
    home, guarantee, bundle = shown
    shutil.copy(home / SENT, tmp_path)
    lines = [json.loads(line) for line in (home / EXPORT).read_text().splitlines()]
    place = next(n for n, line in enumerate(lines) if line["action"] == "reserve")
    lines[place][field] = value
    (tmp_path / EXPORT).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (problem,) = audit(tmp_path, guarantee, bundle)["problems"]
    assert "was changed, dropped or moved" in problem


def test_a_charge_below_the_guarantee_is_found(shown: tuple[Path, Guarantee, str]) -> None:
    home, guarantee, bundle = shown
    found = audit(home, replace(guarantee, epsilon=5.0), bundle)["problems"]
    assert any("charged less than its answers cost" in problem for problem in found)
    found = audit(home, guarantee, "0" * 64)["problems"]
    assert any("of another bundle" in problem for problem in found)


@pytest.mark.slow
def test_three_processes_from_end_to_end(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("cryptography")
    sizes = Settings(public=800, participants=800, asked=200)
    found = run_demo(tmp_path, sizes)
    audit, device, rivals = found["audit"], found["device"], found["rivals"]
    assert audit["problems"] == []
    assert audit["answers"] == audit["sent"] == device["asked"] == 200
    assert audit["most"] == EPSILON
    assert audit["guarantee"] == device["guarantee"]
    # 0.83 on average over the noise, deviation .008; the most frequent label is right in .755.
    assert device["accuracy"] > rivals["majority"] + 0.02
    assert rivals["rows"] > rivals["majority"] + 0.02
    told = summary(found)
    assert "nothing is wrong" in told
    assert f"{device['accuracy']:.1%} of its predictions are right; " in told
    assert f"{rivals['majority']:.1%} by the most frequent label" in told
    anchor = json.loads((tmp_path / "anchor.json").read_text())["anchor"]
    assert anchor["epsilon"] == 0
    words = {cell for cell in load_adult_sample().test_rows[0] if isinstance(cell, str)}
    assert words
    log = (tmp_path / "server.log").read_bytes()
    assert b"predictions" in log
    assert not any(word.encode() in log for word in words)
