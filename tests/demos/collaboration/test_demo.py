"""Three processes that share a folder of public files, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reticent.datasets import load_adult_sample
from reticent.demos.collaboration.demo import run_demo, summary
from reticent.demos.collaboration.settings import EPSILON, CollaborationSettings

pytest.importorskip("fastapi")
pytest.importorskip("cryptography")


@pytest.mark.slow
def test_three_processes_from_end_to_end(tmp_path: Path) -> None:
    sizes = CollaborationSettings(public=800, participants=800, asked=200)
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
