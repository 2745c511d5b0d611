"""The regression table on generated rows: splits, choosing, rivals, the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from papers.choose import regression

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(3000, 4))
TARGETS = 3.0 * ROWS[:, 0] - ROWS[:, 1] + 0.2 * RNG.normal(size=3000)


def parts(seed: int = 1) -> regression.Parts:
    return regression.parts_of(ROWS, TARGETS, seed=seed)


def test_parts_share_no_row_and_depend_on_the_seed() -> None:
    found = parts()
    sizes = [len(part) for part in (found.private, found.public, found.scored)]
    assert sizes == [2138, 112, 750]
    every = np.concatenate([found.private_y, found.public_y, found.scored_y])
    assert len(np.unique(every)) == 3000
    assert not np.array_equal(found.public_y, parts(2).public_y)
    assert np.quantile(found.public_y, 0.005) == found.ends[0]


@pytest.mark.parametrize("name", ["sufficient statistics", "functional mechanism"])
def test_rivals_without_noise_are_least_squares(name: str) -> None:
    found = parts()
    settings = {"components": 4, "reach": 16.0, "ridge": 1.0, "share": 1.0, "added": 0.0}
    model = regression.FITS[name](found, settings, epsilon=1.0, scale=1e-9, seed=0)
    plain = LinearRegression().fit(found.private, np.clip(found.private_y, *found.ends))
    expected = np.clip(plain.predict(found.scored), *found.ends)
    assert np.abs(model.predict(found.scored) - expected).max() < 0.1


def test_noise_of_rivals_shrinks_with_epsilon() -> None:
    found = parts()
    settings = {"components": 4, "reach": 3.0, "ridge": 1.0, "share": 1.0, "added": 0.0}
    for name in ("sufficient statistics", "functional mechanism"):
        worth = [
            np.mean(
                [
                    regression.scores(
                        regression.FITS[name](
                            found, settings, epsilon=epsilon, scale=1.0, seed=seed
                        ).predict(found.scored),
                        found.scored_y,
                    )["r2"]
                    for seed in range(5)
                ]
            )
            for epsilon in (0.01, 1.0, 100.0)
        ]
        assert worth == sorted(worth)
        assert worth[2] > 0.95


def test_settings_are_chosen_on_public_rows_alone() -> None:
    found = parts()
    grid = [{"ridge": 1e6}, {"ridge": 0.05}]
    assert regression.chosen("moments", found, grid, epsilon=50.0) == grid[1]
    hidden = regression.Parts(
        np.full_like(found.private, np.nan),
        np.full_like(found.private_y, np.nan),
        found.public,
        found.public_y,
        np.full_like(found.scored, np.nan),
        np.full_like(found.scored_y, np.nan),
    )
    assert regression.chosen("moments", hidden, grid, epsilon=50.0) == grid[1]


def test_the_command_writes_a_page_and_keeps_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def two(*_: Any) -> dict[str, Any]:
        return {
            name: [{"components": 4, "reach": 3.0, "ridge": 1.0, "share": 1.0, "added": 0.0}]
            for name in ("sufficient statistics", "functional mechanism")
        } | {"moments": [{"ridge": 0.1}]}

    monkeypatch.setattr(regression, "DATA", {"waves": lambda: (ROWS, TARGETS)})
    monkeypatch.setattr(regression, "_grids", two)
    several = {"columns, at 1": {"joint": 0.5, "split": 0.4}}
    monkeypatch.setattr(regression, "several_run", lambda seed: several)
    given = ["--folder", str(tmp_path / "kept"), "--output", str(tmp_path / "page.md")]
    regression.main(given)
    page = (tmp_path / "page.md").read_text()
    assert page in capsys.readouterr().out
    assert page.count("| moments |") == 2
    assert "| columns, at 1 | 0.500 ± 0.000 | 0.400 ± 0.000 |" in page
    assert len(list((tmp_path / "kept").iterdir())) == 6
    monkeypatch.setattr(regression, "regression_run", None)
    regression.main(given)
