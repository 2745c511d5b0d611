"""The Power Mechanism paper's tables and figures: ``python -m papers.power.table --data adult``.

Tables 3, 4 and 5, Figures 4 to 11, and inversion. The paper's epsilon is a score of smoothness and
protects nobody. DP-Adam's is that of a training set, and does not cover the rows that are
predicted. What a proved budget gives stands in ``papers.power.codes`` and ``papers.power.within``.
Every cell is cached in the folder, so an interrupted run continues. On one core a seed of Adult
takes about five minutes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from papers.drawings import png
from papers.power.attacks import bound_and_attack, hijacking
from papers.power.convergence import clients, servers
from papers.power.figures import published_mode
from papers.power.parts import Parts
from papers.power.published_mode import (
    baseline_scores,
    dp_adam,
    inversion,
    not_private,
    powers,
    published,
)
from papers.power.report import markdown
from papers.power.settings import TABLES, settings_of
from papers.result_files import write_result
from papers.seeded_command import Cells, command_of, every_seed, folder_of, leave, seeded_parser
from papers.seeds import combined
from reticent.training.progress import Report, silent

Results = dict[str, Any]

_MODULE = "papers.power.table"
_BOUNDED = (1.0, 5.0)
_LONGEST = 8  # list on the page
_CELLS = 10  # beside those of DP-Adam


def run(parts: Parts, folder: Path, report: Report = silent) -> Results:
    """All figures of one table and seed; cells that stand in ``folder`` already are read from
    there.
    """
    settings = parts.settings
    total = _CELLS + len(settings.published_epsilons)
    cell = Cells(folder / "cells", "tables", total, report)
    return {
        "data": parts.table.name,
        "origin": parts.table.origin,
        "rows": {
            "public": len(parts.public_rows),
            "private": len(parts.private_rows),
            "test": len(parts.test_rows),
        },
        "not private": cell("not-private", partial(not_private, parts)),
        "dp-adam": {
            f"{epsilon:g}": cell(f"dp-adam-{epsilon:g}", partial(dp_adam, parts, epsilon=epsilon))
            for epsilon in settings.published_epsilons
        },
        "published": cell("published", partial(published, parts)),
        "inversion": cell("inversion", partial(inversion, parts)),
        "baseline scores": cell("baseline-scores", partial(baseline_scores, parts)),
        "hijacking": cell("hijacking", partial(hijacking, parts)),
        "bounds": {
            f"{epsilon:g}": cell(
                f"bound-{epsilon:g}", partial(bound_and_attack, parts, epsilon=epsilon)
            )
            for epsilon in _BOUNDED
        },
        "clients": cell("clients", partial(clients, parts)),
        "servers": cell("servers", partial(servers, parts)),
        "powers": cell("powers", partial(powers, parts)),
        "server": list(settings.server),
        "DP-Adam": list(settings.dp_adam),
        "paper": {f"{epsilon:g}": list(figures) for epsilon, figures in settings.paper.items()},
    }


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    parser = seeded_parser(_MODULE, __doc__ or "", runs="power-table", data=("adult", *TABLES))
    parser.add_argument(
        "--all-rows", action="store_true", help="release all rows that are not the attackers'"
    )
    parser.add_argument(
        "--tuning",
        action="store_true",
        help="hold out a fifth of the training rows in place of the test rows",
    )
    chosen = parser.parse_args(arguments)
    settings = settings_of(chosen.data)
    if chosen.all_rows:
        settings = replace(settings, private_rows=None)

    def measure(seed: int, folder: Path, report: Report) -> Results:
        return run(Parts.of(settings, seed=seed, tuning=chosen.tuning), folder, report)

    runs = every_seed(chosen, measure)
    command = command_of(chosen, _MODULE, all_rows=False, tuning=False)
    means, errors = combined(runs)
    drawing = published_mode(means, errors)
    write_result(folder_of(chosen) / "published.png", png(drawing, dpi=110))
    brief = [_without_curves(each) for each in runs]
    leave(chosen, "table", brief, page_of(brief, command))


def _without_curves(results: Results) -> Results:
    """What the page is made of: everything but the long lists that the figures draw."""
    return {
        name: _without_curves(value) if isinstance(value, dict) else value
        for name, value in results.items()
        if not (isinstance(value, list) and len(value) > _LONGEST)
    }


def page_of(runs: list[Results], command: str) -> str:
    """The page, from what the command leaves beside it."""
    return markdown(*combined(runs), seeds=len(runs), command=command)


if __name__ == "__main__":
    torch.set_num_threads(1)  # networks this small only wait for a second thread
    main()
