"""The Power Mechanism's tables and figures: ``python -m papers.power.table --data adult --seeds
3``.

Published mode (Tables 3, 4 and 5, Figures 4 to 11), inversion, and the default mode at proved
budgets beside raw columns under local privacy. Three budgets are kept apart: the paper's score
of smoothness, which protects nobody; the proved epsilon of the default mode; and, in DP-Adam's
rows, the epsilon of a training set, which does not cover the rows that are predicted. Every cell
is cached in the folder, so an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from papers.power.attacks import bound_and_attack, hijacking
from papers.power.convergence import clients, servers
from papers.power.default_mode import default, dp_adam, non_private, raw
from papers.power.figures import default_mode, published_mode
from papers.power.parts import Parts
from papers.power.published_mode import baseline_scores, inversion, powers, published
from papers.power.report import markdown
from papers.power.settings import TABLES, settings_of
from papers.result_files import write_result
from papers.seeds import combined
from reticent.pages.drawings import png

Results = dict[str, Any]


def run(parts: Parts, folder: Path) -> Results:
    """All figures of one table and seed; cells that stand in ``folder`` already are read from
    there.
    """
    cells, settings = folder / "cells", parts.settings

    def cell(name: str, compute: Callable[[], Results]) -> Results:
        path = cells / f"{name}.json"
        if not path.is_file():
            write_result(path, json.dumps(compute()))
            print(name, flush=True)
        figures: Results = json.loads(path.read_text(encoding="utf-8"))
        return figures

    near = min(radius for radius in settings.radii if radius is not None)
    budgets = {
        f"{_radius(radius)}-{epsilon:g}": (epsilon, radius)
        for radius in settings.radii
        for epsilon in settings.epsilons
    }
    extremes = (min(settings.epsilons), max(settings.epsilons))
    return {
        "data": parts.table.name,
        "origin": parts.table.origin,
        "rows": {
            "public": len(parts.public_rows),
            "private": settings.private_rows,
            "published": settings.published_rows,
            "test": len(parts.test_rows),
        },
        "non-private": cell("non-private", partial(non_private, parts)),
        "default": {
            name: cell(f"default-{name}", partial(default, parts, epsilon=epsilon, radius=radius))
            for name, (epsilon, radius) in budgets.items()
        },
        "raw": {
            name: cell(f"raw-{name}", partial(raw, parts, epsilon=epsilon, radius=radius))
            for name, (epsilon, radius) in budgets.items()
        },
        "dp-adam": {
            f"{epsilon:g}": cell(f"dp-adam-{epsilon:g}", partial(dp_adam, parts, epsilon=epsilon))
            for epsilon in settings.epsilons
        },
        "published": cell("published", partial(published, parts)),
        "inversion": cell("inversion", partial(inversion, parts)),
        "baseline scores": cell("baseline-scores", partial(baseline_scores, parts)),
        "hijacking": cell("hijacking", partial(hijacking, parts, epsilon=1.0, radius=near)),
        "bounds": {
            f"{epsilon:g}": cell(
                f"bound-{epsilon:g}", partial(bound_and_attack, parts, epsilon=epsilon, radius=near)
            )
            for epsilon in extremes
        },
        "clients": cell("clients", partial(clients, parts)),
        "servers": cell("servers", partial(servers, parts)),
        "powers": cell("powers", partial(powers, parts)),
        "cost targets": list(settings.cost_targets),
        "paper": {f"{epsilon:g}": list(figures) for epsilon, figures in settings.paper.items()},
    }


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=TABLES, required=True)
    parser.add_argument(
        "--out", type=Path, help="output and cache folder (default: runs/power-table-DATA)"
    )
    parser.add_argument("--seeds", type=int, default=1, help="how many runs are averaged")
    parser.add_argument(
        "--tuning",
        action="store_true",
        help="hold out a fifth of the training rows in place of the test rows",
    )
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error("--seeds: expected at least 1")
    folder = chosen.out if chosen.out is not None else Path("runs") / f"power-table-{chosen.data}"
    runs = [
        run(
            Parts.of(settings_of(chosen.data), seed=seed, tuning=chosen.tuning),
            folder / f"seed-{seed}",
        )
        for seed in range(chosen.seeds)
    ]
    means, errors = combined(runs)
    means["seeds"], means["arguments"] = (
        chosen.seeds,
        f"--data {chosen.data} --seeds {chosen.seeds}",
    )
    write_result(
        folder / "results.json",
        json.dumps(_storable({"means": means, "standard errors": errors}), indent=2),
    )
    write_result(folder / "table.md", markdown(means, errors))
    for name, drawing in (
        ("default.png", default_mode(means, errors)),
        ("published.png", published_mode(means, errors)),
    ):
        write_result(folder / name, png(drawing, dpi=110))
    print(folder / "table.md")


def _storable(values: Any) -> Any:
    """``values`` with None for what is not a number, which JSON does not know."""
    if isinstance(values, dict):
        return {key: _storable(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_storable(value) for value in values]
    return None if isinstance(values, float) and math.isnan(values) else values


def _radius(radius: float | None) -> str:
    return "any" if radius is None else f"{radius:g}"


if __name__ == "__main__":
    torch.set_num_threads(1)  # networks this small only wait for a second thread
    main()
