"""The table of radii end to end on digits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from papers.datasets import load
from papers.posthoc import radius_table
from papers.posthoc.settings import SETTINGS
from reticent.training.progress import silent

SMALL = replace(
    SETTINGS["mnist"], data="digits", latent_dimension=3, embedder_epochs=1, embedder_width=32
)


def test_small_table(tmp_path: Path) -> None:
    data = load("digits")
    found = radius_table.run(
        data, SMALL, tmp_path, radii=[0.01, 5.0], epsilons=[1.0], seed=0, report=silent
    )
    assert found.rows == len(data.train_images)
    assert found.at[1].with_neighbour == found.rows
    assert found.at[0].median_neighbours <= found.at[1].median_neighbours
    text = radius_table.markdown(found, title="Small")
    assert text.count(f"\n| 5 | {found.rows:,} of {found.rows:,} |") == 1
    assert "half of the rows have a row with another label within R: " in text
