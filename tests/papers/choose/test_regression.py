"""The regression table on generated rows: splits, choosing, rivals, the page."""

from __future__ import annotations

import numpy as np

from papers.choose import regression

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(3000, 4))
TARGETS = 3.0 * ROWS[:, 0] - ROWS[:, 1] + 0.2 * RNG.normal(size=3000)


def parts(seed: int = 1) -> regression.Parts:
    return regression.parts_of(ROWS, TARGETS, seed=seed)


def test_settings_are_chosen_on_public_rows_alone() -> None:
    found = parts()
    grid = [{"residual": 0.001}, {"residual": 0.5}]
    assert regression.chosen("noisy gradient descent", found, grid, epsilon=50.0) == grid[1]
    hidden = regression.Parts(
        np.full_like(found.private, np.nan),
        np.full_like(found.private_y, np.nan),
        found.public,
        found.public_y,
        np.full_like(found.scored, np.nan),
        np.full_like(found.scored_y, np.nan),
    )
    assert regression.chosen("noisy gradient descent", hidden, grid, epsilon=50.0) == grid[1]
