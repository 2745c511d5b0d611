"""The figure of certification time: what it measures on small settings, and what it shows of a
limit.
"""

from __future__ import annotations

import pytest

from papers.posthoc import lipschitz_figure
from papers.posthoc.exact.constants import lipschitz_constant
from papers.posthoc.lipschitz_figure import FigureSettings, run, trained
from papers.posthoc.milp import milp_lipschitz
from reticent.core import Box

SMALL = FigureSettings(
    radii=(0.1, 0.5),
    dimensions=(2, 3),
    layers=(1, 2),
    inputs=3,
    hidden=4,
    deep_hidden=4,
    points=2,
    epochs=2,
    limit=60.0,
)


def silent(*_: object) -> None:
    """A report that nobody reads."""


@pytest.fixture(scope="module")
def results() -> lipschitz_figure.Results:
    return run(SMALL, seed=0, report=silent)


def test_every_setting_of_every_panel_is_measured(results: lipschitz_figure.Results):
    assert [[row["x"] for row in rows] for rows in results["panels"].values()] == [
        [0.1, 0.5],
        [2, 3],
        [1, 2],
    ]
    assert [row["widths"] for row in results["panels"]["layers"]] == [[3, 4, 3], [3, 4, 4, 3]]
    for rows in results["panels"].values():
        for row in rows:
            for method in ("search", "milp"):
                assert len(row[method]["seconds"]) == 2
                assert row[method]["unfinished"] == 0
                assert min(row[method]["seconds"]) > 0


def test_both_methods_answer_the_same_question():
    network, points = trained((3, 6, 4, 3), 2, seed=1)
    domain = Box.cube(3, 4.0)
    for point in points[:3]:
        exact = lipschitz_constant(network, point, 0.5, domain=domain).value
        assert milp_lipschitz(network, point, 0.5, domain=domain).value == pytest.approx(
            exact, rel=1e-6
        )
