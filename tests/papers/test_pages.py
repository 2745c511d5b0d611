"""Pages of results are what their command prints from the numbers beside them, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from papers.certified import late_figures
from papers.certified import rungs as certified_rungs
from papers.certified import table as certified_table
from papers.certified.chart import Chart
from papers.posthoc import (
    algorithm1,
    constants_figure,
    local_privacy_table,
    reconstruction_table,
)
from papers.power import convergence_bound
from papers.power import table as power_table
from papers.private_knn import figures as knn_figures
from papers.private_knn import headline, multi_label, regression, tradeoff

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def charts(path: Path, stored: list[dict[str, Any]]) -> str:
    drawn = [
        Chart(
            one["title"],
            one["x"],
            one["y"],
            {name: [(x, y) for x, y in points] for name, points in one["series"].items()},
            one["levels"],
            notes=tuple(one["notes"]),
        )
        for one in stored
    ]
    number = path.stem.split("-")[0].removeprefix("figure")
    pages = "\n".join(chart.markdown() for chart in drawn)
    return f"{pages}\n![figure {number}]({path.stem}.png)\n"


def attributes(path: Path, stored: dict[str, Any]) -> str:
    numbers = {name: value for name, value in stored.items() if name != "published"}
    page = multi_label.markdown(numbers, stored["published"])
    return f"{page}\n![Student accuracy]({path.stem}.png)\n"


def rungs(path: Path, stored: dict[str, Any]) -> str:
    name = path.stem.removeprefix("rungs-")
    found = stored["means"], stored["standard errors"], stored["seeds"]
    return certified_rungs.markdown(name, *found)


def of_command(make: Callable[[Any, str], str], command: str, _: Path, stored: Any) -> str:
    return make(stored, command)


def said(path: Path) -> str:
    """The command that a page names."""
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    return page.split("Printed by `", 1)[1].split("`", 1)[0]


def of_seeds(module: Any, path: Path, stored: list[dict[str, Any]]) -> str:
    data = said(path).split("--data ", 1)[1].split()[0]
    made: str = module.markdown(data, stored, command=said(path))
    return made


MAKERS: dict[str, Callable[[Path, Any], str]] = {
    "certified/figure[24568]-*": charts,
    "certified/figuresurvive-*": charts,
    "certified/table1": lambda _, stored: certified_table.markdown(stored),
    "certified/rungs-*": rungs,
    "certified/late-figure?": late_figures.page_of,
    "knn/figures": lambda _, stored: knn_figures.markdown(stored),
    "knn/headline-*": lambda path, stored: headline.table(
        path.stem.removeprefix("headline-"),
        {name: stored[name] for name in headline.ROWS if name in stored},
    ),
    "knn/multi-label-*": attributes,
    "knn/regression": partial(
        of_command, regression.markdown, "python -m papers.private_knn.regression"
    ),
    "knn/tradeoff-*": lambda _, stored: tradeoff.markdown(stored),
    "posthoc-algorithm1-*": lambda path, stored: algorithm1.page_of(
        path.stem.rpartition("-")[2], stored
    ),
    "posthoc-local-privacy-*": partial(of_seeds, local_privacy_table),
    "posthoc-constants-*": partial(of_seeds, constants_figure),
    "posthoc-reconstruction-*": partial(of_seeds, reconstruction_table),
    "power/*/table": lambda path, stored: power_table.page_of(stored, said(path)),
    "power/convergence-bound": partial(
        of_command, convergence_bound.markdown, "python -m papers.power.convergence_bound"
    ),
}


@pytest.mark.parametrize("pattern", list(MAKERS))
def test_a_page_is_what_its_command_prints(pattern: str) -> None:
    found = sorted(RESULTS.glob(f"{pattern}.json"))
    assert found
    for path in found:
        page = MAKERS[pattern](path, json.loads(path.read_text(encoding="utf-8")))
        assert page == path.with_suffix(".md").read_text(encoding="utf-8"), path
