"""What commands have in common that measure cells over several seeds: arguments, cached cells, and
the files that they leave.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from papers.result_files import cached_result, write_result
from reticent.training.progress import Report, bar

Results = dict[str, Any]

PICTURES = ("mnist", "fashion", "utkface")
"""Data sets of the posthoc papers."""

SEEDS = [0, 1, 2]
"""Of a command that names none."""


class Cells:
    """Results of one seed, each computed once and told about.

    Args:
        folder: of the cells; made if missing.
        title: of the reports.
        total: how many cells there will be.
        report: told after every cell.
    """

    def __init__(self, folder: Path, title: str, total: int, report: Report) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._title, self._total, self._report = folder, title, total, report
        self._done = 0

    def __call__(self, name: str, compute: Callable[[], Results]) -> Results:
        """What stands in the folder as ``name``, or else computed and left there."""
        found = cached_result(self._folder / f"{name}.json", compute)
        self._done += 1
        self._report(self._title, self._done, self._total, math.nan)
        return found


def seeded_parser(
    module: str, description: str, *, runs: str, data: Sequence[str] = PICTURES
) -> argparse.ArgumentParser:
    """A command line with ``--data``, ``--out`` and ``--seeds``.

    Args:
        module: that is called, by its whole name.
        description: the module's own; its first paragraph is shown.
        runs: of the folder below ``runs``.
        data: names of data sets, of which the first is the default; the name that was chosen ends
            the folder's. None for a command on one data set.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=description.split("\n\n", 1)[0]
    )
    if data:
        parser.add_argument("--data", choices=sorted(set(data)), default=data[0])
    shown = f"runs/{runs}-DATA" if data else f"runs/{runs}"
    parser.add_argument("--out", type=Path, help=f"folder (default: {shown})")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.set_defaults(runs=runs)
    return parser


def command_of(chosen: argparse.Namespace, module: str, **usual: object) -> str:
    """The command that was called, but for its folder.

    Args:
        chosen: arguments of a parser of ``seeded_parser``.
        module: that was called, by its whole name.
        usual: defaults of the command's own options, by name; one that was not changed is left
            out. A flag's default is False.
    """
    words = [f"python -m {module}", *(["--data", chosen.data] if "data" in chosen else [])]
    for name, default in {"seeds": SEEDS, **usual}.items():
        given = getattr(chosen, name)
        several = isinstance(given, Sequence) and not isinstance(given, str)
        values = list(given) if several else [given]
        if given == default or values == default:
            continue
        words.append("--" + name.replace("_", "-"))
        words += (
            []
            if given is True
            else [str(value) if isinstance(value, str) else f"{value:g}" for value in values]
        )
    return " ".join(words)


def over(seeds: int, *, embedders: str = "") -> str:
    """What figures of a page are, and what their errors are taken over; ends a sentence.

    Args:
        seeds: how many.
        embedders: a word on what seeds share or do not, in brackets behind their number.

    Example:
        >>> over(1), over(3)
        ('of one seed, so without a standard error.', 'means over 3 seeds ± their standard errors.')
    """
    if seeds == 1:
        return "of one seed, so without a standard error."
    said = f" ({embedders})" if embedders else ""
    return f"means over {seeds} seeds{said} ± their standard errors."


def folder_of(chosen: argparse.Namespace) -> Path:
    """Where the command leaves its files."""
    if chosen.out is not None:
        return Path(chosen.out)
    return Path("runs") / "-".join([chosen.runs, *([chosen.data] if "data" in chosen else [])])


def every_seed(
    chosen: argparse.Namespace, measure: Callable[[int, Path, Report], Results]
) -> list[Results]:
    """What ``measure`` finds for each seed, its folder and a report."""
    with bar() as report:
        return [measure(seed, folder_of(chosen) / f"seed{seed}", report) for seed in chosen.seeds]


def leave(chosen: argparse.Namespace, name: str, runs: Sequence[Results], page: str) -> None:
    """Writes results and page as ``name``, and prints where the page is."""
    folder = folder_of(chosen)
    write_result(folder / f"{name}.json", json.dumps(runs, indent=2))
    write_result(folder / f"{name}.md", page)
    print(folder / f"{name}.md")
