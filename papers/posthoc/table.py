"""The paper's Table 1, with guarantees that hold: ``python -m papers.posthoc.table --data mnist``.

For each data set: the eight published obfuscators and ours, accuracy on the held-out part at a
*proved total* epsilon of 1, 2, 5 and 10, withheld answers counted as errors; beside the paper's
own figures. ``papers.posthoc.algorithm1`` says where those come from. Every cell is cached in the
folder, so an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from papers.datasets import load
from papers.drawings import one_panel, png
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.measurements import (
    Embedded,
    Informal,
    Measured,
    informal_accuracy,
    our_labels,
    our_vectors,
    published_network,
    vector_release,
)
from papers.posthoc.settings import DELTAS, EPSILONS, TableSettings, settings_of
from papers.result_files import write_result
from papers.seeded_command import Cells
from reticent.datasets import Dataset
from reticent.demos.posthoc import response_accuracy
from reticent.published.obfuscators import PUBLISHED_ROWS
from reticent.systems.posthoc.plans import Path as PlanPath
from reticent.training.progress import Report, bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = dict[str, Any]
Cell = Callable[[str, Callable[[], Measured | Informal]], Results]

CLASSES = {"mnist": 10, "fashion": 10, "utkface": 2, "digits": 10}
"""Labels of each data set, for randomised response."""

PUBLISHED_MECHANISMS = ("laplace", "k-norm-linf")
"""Mechanisms that calibration may choose from for published networks: theirs, and the one that
suits l-infinity.
"""


def run(
    data: Dataset, settings: TableSettings, folder: Path, *, seed: int, report: Report
) -> Results:
    """All figures of one table; cells that stand in ``folder`` already are read from there.

    Args:
        data: the data set that ``settings`` were made for.
        settings: fixed settings.
        folder: cache and output folder, made if missing.
        seed: of training, of the split for calibration, and of the experiment's noise (so: not
            private).
        report: told about every finished training epoch and cell.
    """
    total = len(PUBLISHED_ROWS) * (1 + len(DELTAS) * len(EPSILONS)) + 2 * len(EPSILONS)
    kept = Cells(folder / "cells", "table, at most", total, report)

    def cell(name: str, compute: Callable[[], Measured | Informal]) -> Results:
        return kept(name, lambda: compute().to_dict())

    points = Embedded.of(
        data, cached_embedder(data, settings, folder, seed=seed, report=report), settings, seed=seed
    )
    results: Results = {
        "data": settings.data,
        "radius": settings.radius,
        "seed": seed,
        "published": {},
    }
    ours: dict[str, Any] = {"embedding": {}, "label": {}}
    for epsilon, outputs, start in zip(
        EPSILONS, settings.outputs, settings.first_noise, strict=True
    ):
        vectors = partial(
            our_vectors, points, epsilon=epsilon, outputs=outputs, first_noise=start, report=report
        )
        labels = partial(our_labels, points, epsilon=epsilon, report=report)
        ours["embedding"][f"{epsilon:g}"] = cell(f"ours-embedding-{epsilon:g}", vectors)
        ours["label"][f"{epsilon:g}"] = cell(f"ours-label-{epsilon:g}", labels)
    results["ours"] = ours
    for row in PUBLISHED_ROWS:
        results["published"][row] = _published_row(points, row, cell, report)
    results["paper"] = {row: list(figures) for row, figures in settings.paper.items()}
    return results


def _published_row(points: Embedded, row: str, cell: Cell, report: Report) -> Results:
    network = cache(partial(published_network, points, row, report))
    figures: Results = cell(f"{row}-informal", lambda: informal_accuracy(points, network()))
    for epsilon in EPSILONS:
        figures[f"{epsilon:g}"] = _proved(points, row, network, cell, epsilon)
    return figures


def _proved(
    points: Embedded, row: str, network: Callable[[], nn.Sequential], cell: Cell, epsilon: float
) -> Results:
    """One row and epsilon at every delta, the largest first.

    Where the global path wins with the largest delta it wins with all: it spends none, and a
    smaller delta only makes the test of the local path withhold more.
    """

    def compute(delta: float) -> Measured:
        both: tuple[PlanPath, ...] = ("global", "local")
        return vector_release(
            points,
            network(),
            mechanisms=PUBLISHED_MECHANISMS,
            paths=both,
            epsilon=epsilon,
            delta=delta,
        )

    figures: Results = {}
    best: Results | None = None
    for delta in sorted(DELTAS, reverse=True):
        if best is None or best["plan"]["path"] != "global":
            best = cell(f"{row}-{epsilon:g}-{delta:g}", partial(compute, delta))
        figures[f"{delta:g}"] = best
    return figures


def markdown(results: Results) -> str:
    """The table as Markdown."""
    head = " | ".join(f"{epsilon:g}" for epsilon in EPSILONS)
    lines = [
        (
            f"# Accuracy at a proved total epsilon: {results['data']}, R = {results['radius']:g} "
            "(l-infinity, beta-VAE embedding)"
        ),
        "",
        (
            "Held-out part, withheld answers counted as errors. Experiment seeds drive the noise: "
            "these releases are not private."
        ),
        "",
    ]
    for delta in DELTAS:
        lines += [
            f"## Proved total epsilon, delta {delta:g}",
            "",
            f"| row | no noise | {head} |",
            "|---|---|---|---|---|---|",
        ]
        for row, figures in results["published"].items():
            cells = " | ".join(_cell(figures[f"{epsilon:g}"][f"{delta:g}"]) for epsilon in EPSILONS)
            lines.append(f"| {row} | {figures['informal']:.3f} | {cells} |")
        for kind in ("embedding", "label"):
            cells = " | ".join(_cell(results["ours"][kind][f"{epsilon:g}"]) for epsilon in EPSILONS)
            lines.append(f"| **ours, {kind}** (delta 0) |  | {cells} |")
        exact = max(round(figures["informal"], 3) for figures in results["published"].values())
        cells = " | ".join(
            f"{response_accuracy(exact, epsilon=epsilon, classes=CLASSES[results['data']]):.3f}"
            for epsilon in EPSILONS
        )
        lines += [f"| randomised response, label (delta 0) | {exact:.3f} | {cells} |", ""]
    lines += [
        (
            "Randomised response gives the label of the best of these networks without noise, or "
            "another one, by expectation. It"
        ),
        (
            "needs no certificate and protects any two inputs, not only close ones. A classifier "
            "trained for labels would raise it."
        ),
        "",
    ]
    lines += [
        "## The paper's Table 1 (its stated epsilon, its accounting)",
        "",
        f"| row | informal | {head} |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row} | " + " | ".join(f"{value:.3f}" for value in figures) + " |"
            for row, figures in results["paper"].items()
        ),
        "",
        (
            "Its noise, norm, test and networks are not those above, and its code is not its text: "
            "`python -m papers.posthoc.algorithm1` takes it apart."
        ),
    ]
    return "\n".join(lines) + "\n"


def figure(results: Results) -> Figure:
    """Accuracy against epsilon: ours, and the published obfuscators under the same proved
    guarantee.
    """
    drawing, axes = one_panel()
    delta = f"{DELTAS[0]:g}"
    for index, (row, figures) in enumerate(results["published"].items()):
        heights = [figures[f"{epsilon:g}"][delta]["accuracy"] for epsilon in EPSILONS]
        axes.plot(
            EPSILONS,
            heights,
            color="0.65",
            marker=".",
            linewidth=1,
            label="published obfuscators" if index == 0 else None,
        )
        if row == "Encoder":
            axes.axhline(
                figures["informal"], color="0.8", linestyle=":", label="Encoder without noise"
            )
    for kind, color in (("embedding", "tab:blue"), ("label", "tab:orange")):
        heights = [results["ours"][kind][f"{epsilon:g}"]["accuracy"] for epsilon in EPSILONS]
        axes.plot(EPSILONS, heights, color=color, marker="o", label=f"ours, {kind}")
    axes.set_xscale("log")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.set_xlabel(f"proved total epsilon for neighbours within R = {results['radius']:g}")
    axes.set_ylabel("accuracy, withheld answers are errors")
    axes.set_title(results["data"])
    drawing.legend(loc="outside lower center", ncols=2, frameon=False)
    return drawing


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=("mnist", "fashion", "utkface"), required=True)
    parser.add_argument(
        "--out", type=Path, help="output and cache folder (default: runs/posthoc-table-DATA)"
    )
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    folder = chosen.out if chosen.out is not None else Path("runs") / f"posthoc-table-{chosen.data}"
    with bar() as report:
        results = run(
            load(chosen.data), settings_of(chosen.data), folder, seed=chosen.seed, report=report
        )
    write_result(folder / "results.json", json.dumps(results, indent=2))
    write_result(folder / "table.md", markdown(results))
    write_result(folder / "table.png", png(figure(results), dpi=150))
    print(folder / "table.md")


def _cell(measured: Results) -> str:
    withheld = f" ({measured['withheld']:.0%} withheld)" if measured["withheld"] > 0 else ""
    return f"{measured['accuracy']:.3f}{withheld}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
