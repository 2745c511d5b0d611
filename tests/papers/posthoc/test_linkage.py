"""The linkage table end to end on a small table of unit vectors."""

from __future__ import annotations

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
    found = linkage.run(data, tmp_path, epsilons=[4.0], seed=0, trials=1_000, report=silent)
    near, far = (found[rule] for rule in linkage.RULES.values())
    assert near["radius"] < far["radius"]  # the nearest row, then the tenth nearest
    for cells in (near, far):
        for kind in linkage.KINDS:
            cell = cells[f"{kind}-4"]
            assert cell["exceeded"] == 0.0
            assert 0.4 < cell["accuracy"] <= 1.0
            assert len(cell["named"]) == len(cell["caps"]) == len(linkage.ANSWERS)
    rungs = ("PublicPCA", "PublicDiscriminants", "LiveCoordinates")
    assert near["vector-4"]["released"].startswith(rungs)
    assert near["label-4"]["released"].startswith("label, ")
    # a second run reads every cell
    monkeypatch.setattr(linkage, "attack_fitted", None)
    again = linkage.run(data, tmp_path, epsilons=[4.0], seed=0, report=silent)
    assert again == found
    text = linkage.markdown([found])
    assert text.count("\n| 4 | ") == 4
    assert f"| {near['label-4']['accuracy']:.3f} | {near['label-4']['named'][0]:.3f} (" in text
