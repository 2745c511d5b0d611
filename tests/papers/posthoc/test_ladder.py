"""The ladder's table end to end on digits: every rung, cached cells, the file it writes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from papers.datasets import load
from papers.posthoc import ladder
from papers.posthoc.settings import SETTINGS
from reticent.demos.posthoc import RESPONSE
from reticent.training.progress import silent

SMALL = replace(
    SETTINGS["mnist"],
    data="digits",
    latent_dimension=3,
    embedder_epochs=2,
    embedder_width=32,
    published_epochs=1,
)


def small(folder: Path, **changed):
    settings = {"radii": (0.5,), "epsilons": (5.0,), "seed": 0, "embedder_seed": 0, **changed}
    return ladder.run(load("digits"), SMALL, folder, report=silent, **settings)


class Refused(Exception):
    """Something would have been computed."""


def refuse(*_: object, **__: object) -> None:
    raise Refused


@pytest.mark.slow
def test_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [small(tmp_path, rows=100)]
    found = runs[0]["0.5"]["5"]
    rungs = {name: rung for name, rung in found.items() if name not in ("auto", RESPONSE)}
    assert len(rungs) == 7
    assert found["auto"]["score"] == max(rung["score"] for rung in rungs.values())
    assert found["auto"]["accuracy"] == found[found["auto"]["by"]]["accuracy"]
    assert all(0.0 < rung["accuracy"] < 1.0 for rung in rungs.values())
    assert found["identity"]["outputs"] == 3.0
    kept = math.exp(5.0) / (math.exp(5.0) + 9.0)
    label = found[RESPONSE]["accuracy"]
    assert (1.0 - kept) / 9.0 < label < kept
    # a second run, and another radius at the same ratio, read every cell
    monkeypatch.setattr(ladder, "cached_embedder", refuse)
    assert small(tmp_path, rows=100) == runs[0]
    narrow = small(tmp_path, rows=100, radii=(0.1,), epsilons=(1.0,))["0.1"]["1"]
    assert {**narrow, RESPONSE: found[RESPONSE]} == found
    assert narrow[RESPONSE] != found[RESPONSE]
    # other rows, or another embedder, are other cells
    names = {path.name for path in (tmp_path / "seed0" / "ladder-cells").iterdir()}
    assert names == {"label-100-rows.json", "0.1-100-rows.json"}
    for other in ({"rows": 101}, {"rows": None}, {"rows": 100, "embedder_seed": 1}):
        with pytest.raises(Refused):
            small(tmp_path, **other)

    text = ladder.markdown("Small", runs)
    assert f"| live coordinates | {found[ladder.LIVE]['accuracy']:.3f} " in text
    best = max(rungs, key=lambda name: found[name]["accuracy"])
    assert f"| ahead on the held-out part | {best} |" in text
