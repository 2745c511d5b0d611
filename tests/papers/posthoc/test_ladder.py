"""The ladder's table end to end on digits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from papers.posthoc import ladder
from papers.posthoc.settings import SETTINGS
from reticent.datasets import load
from reticent.training.progress import silent

SMALL = replace(
    SETTINGS["mnist"], data="digits", latent_dimension=3, embedder_epochs=2, embedder_width=32
)


def test_small_table(tmp_path: Path) -> None:
    results = ladder.run(load("digits"), SMALL, tmp_path, epsilons=(5.0,), seed=0, report=silent)
    rungs = results[5.0]
    names = [rung.name for rung in rungs]
    assert len(set(names)) == len(names)
    kinds = {name.partition("(")[0] for name in names}
    assert {"Identity", "PublicPCA", "PublicDiscriminants", "NoiseAware"} <= kinds
    assert [rung.score for rung in rungs] == sorted((rung.score for rung in rungs), reverse=True)
    assert [rung.held_out is not None for rung in rungs] == [True] + [False] * (len(rungs) - 1)
    assert 0.0 < rungs[0].held_out < 1.0
    assert all(0.0 < rung.error < 0.05 for rung in rungs)
    text = ladder.markdown(results, title="Small")
    assert text.count("\n| 5 |") == len(rungs)
