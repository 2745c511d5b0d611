"""The linkage table end to end on a small table of unit vectors."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from papers.posthoc import linkage
from reticent.datasets import Table
from reticent.training.progress import silent


def test_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 400)
    rows = random.normal(size=(400, 24))
    rows[:, 0] += 3.0 * (2 * labels - 1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    columns = tuple(f"x{place}" for place in range(24))
    data = Table(
        "small", columns, rows[:250], labels[:250], rows[250:], labels[250:], ("no", "yes"), "made"
    )
    few = ("class discriminants, 1 value", "principal components, 4 values")
    monkeypatch.setattr(linkage, "VECTORS", {name: linkage.VECTORS[name] for name in few})
    found = linkage.run(data, tmp_path, epsilons=[4.0], seed=0, trials=1_000, report=silent)
    near, far = (found[rule] for rule in linkage.RULES.values())
    assert near["radius"] < far["radius"]  # the nearest row, then the tenth nearest
    names = {*linkage.LABELS, *linkage.VECTORS, linkage.AUTO}
    for cells in (near["by epsilon"]["4"], far["by epsilon"]["4"]):
        assert set(cells) == names
        for cell in cells.values():
            assert cell["exceeded"] == 0.0
            assert 0.4 < cell["accuracy"] <= 1.0
            assert len(cell["named"]) == len(cell["caps"]) == len(linkage.ANSWERS)
        chosen = cells[linkage.AUTO]["released"]
        assert cells[chosen]["score"] == max(cells[name]["score"] for name in linkage.VECTORS)
        assert cells[linkage.AUTO]["accuracy"] == cells[chosen]["accuracy"]
    # the response does not depend on the radius, and its mechanism is the one that was asked for
    response = next(iter(linkage.LABELS))
    assert near["by epsilon"]["4"][response]["released"] == "response"
    assert math.isclose(
        near["by epsilon"]["4"][response]["accuracy"], far["by epsilon"]["4"][response]["accuracy"]
    )
    # a second run reads every cell
    monkeypatch.setattr(linkage, "attack_fitted", None)
    again = linkage.run(data, tmp_path, epsilons=[4.0], seed=0, report=silent)
    assert again == found
    text = linkage.markdown([found], command="python -m papers.posthoc.linkage --seeds 0")
    assert "Printed by `python -m papers.posthoc.linkage --seeds 0`." in text
    assert text.count("\n| epsilon 4 | ") == 2
    label = near["by epsilon"]["4"]["label"]
    assert f"| {label['accuracy']:.3f} | {label['named'][0]:.3f} (" in text
