"""The table of all ways: what a row says, and what ways score on generated rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.private_knn import rungs
from papers.private_knn.pate_rung import pate
from papers.private_knn.rung_rows import Found, Rows
from papers.private_knn.rungs import public_rows_alone, released, run, table


def test_rows_are_ordered_and_carry_their_errors_and_settings() -> None:
    found = {
        "public rows alone": Found([0.5]),
        "cells": Found([0.8, 0.9, 0.7], {"cells": 64, "share": 1 / 3}),
    }
    lines = table("digits", 2.0, found, 10).splitlines()
    at = lines.index("| cells | for good | 80.00 % | 5.77 | 3 | cells 64, share 0.3333 |")
    assert lines[at + 1] == "| public rows alone | no private record | 50.00 % | no noise | 1 | - |"
    assert lines[-1].startswith("Not run: moments; ")
    assert "PATE" in lines[-1]
    assert "cells" not in lines[-1]


def test_ways_score_what_nobody_learned_from(clusters: Rows) -> None:
    assert public_rows_alone(clusters, 1.0, (0,)).right[0] > 0.9


def test_seeds_reach_the_noise_of_released_models(clusters: Rows) -> None:
    quiet = released("cells", clusters, 50.0, (0, 1))
    assert min(quiet.right) > 0.9
    assert set(quiet.settings) == {"cells", "components", "whitening"}
    models, _ = rungs._models("cells", clusters.scaled, 0.5, (0, 1))
    assert not np.array_equal(models[0].votes_, models[1].votes_)


@pytest.mark.parametrize(
    "name",
    [
        "cells",
        "PATE, support vector machine on the surest labels",
    ],
)
def test_settings_come_from_public_rows_alone(name: str, clusters: Rows) -> None:
    """Other private records, as many, leave settings as they are; and answers do not depend on the
    truth that they are scored by, so over the three ways to shift it each of them is right once.
    """
    rng = np.random.default_rng(5)
    parts = ("private", "public", "scored")
    hard = replace(
        clusters,
        **{
            part: getattr(clusters, part) + 15 * rng.normal(size=getattr(clusters, part).shape)
            for part in parts
        },
    )
    others = replace(
        hard, private=rng.normal(size=hard.private.shape), codes=rng.permutation(hard.codes)
    )
    shifted = [replace(hard, truth=(hard.truth + by) % 3) for by in range(3)]
    found, other, *rest = (
        rungs.WAYS[name][1](rows, 5.0, (0, 1)) for rows in (shifted[0], others, *shifted[1:])
    )
    assert 0.35 < found.right[0] < 0.95  # settings matter
    assert found.settings == other.settings != {}
    assert np.sum([one.right for one in (found, *rest)], axis=0) == pytest.approx(1.0)


def test_pate_is_tuned_and_right_where_noise_is_small(clusters: Rows) -> None:
    found = pate(clusters, 200.0, (0, 1))
    assert np.mean(found.right) > 0.85
    assert set(found.settings) == {"records", "ridge", "threshold"}


def test_ways_that_are_done_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clusters: Rows
) -> None:
    asked: list[str] = []

    def way(rows: Rows, epsilon: float, seeds: tuple[int, ...]) -> Found:
        asked.append("once")
        return Found([0.25, 0.75], {"share": 0.1})

    monkeypatch.setattr(rungs, "rows_of", lambda data, folder: clusters)
    monkeypatch.setitem(rungs.WAYS, "cells", ("for good", way))
    pages = [run("digits", 2.0, ["cells"], folder=tmp_path, seeds=(0, 1)) for _ in range(2)]
    assert pages[0] == pages[1]
    assert asked == ["once"]
    assert "| cells | for good | 50.00 % | 25.00 | 2 | share 0.1 |" in pages[0]
