"""What certifying one point costs, the paper's Figure 4: ``python -m
papers.posthoc.lipschitz_figure``.

Processor time for the exact local Lipschitz constant of an obfuscator, l-infinity to l1, against
the radius of the neighbourhood, the input dimension and the number of hidden layers: our exact
search, and the paper's method (a mixed-integer program per point; HiGHS where the paper used
Gurobi). Obfuscators are trained on whitened principal components of scikit-learn's digits, together
with a linear head, through noise on what they release; points are held-out digits.

Reference: Posthoc privacy guarantees for neural network queries, Figure 4 and section 5, E3.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.decomposition import PCA

from papers.drawings import empty_drawing, png
from papers.posthoc.exact.constants import lipschitz_constant
from papers.posthoc.exact.search import Limits
from papers.posthoc.milp import milp_lipschitz
from papers.result_files import write_result
from reticent.core import Box
from reticent.core.errors import CertificationFailed
from reticent.core.extras import require
from reticent.datasets import load_digits
from reticent.networks import Network, from_torch
from reticent.training.progress import Report, bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

PUBLISHED_SECONDS = 2.0
"""A picture of MNIST on the papers' CPU client, the whole inference; 3.5 for UTKFace."""

_MODULE = "papers.posthoc.lipschitz_figure"
_HALF_WIDTH = 4.0
_NAMES = {"search": "exact search (ours)", "milp": "mixed-integer program (HiGHS)"}
_STYLES = {"search": ("#1b5fa7", "o"), "milp": ("#c05a1a", "s")}
_AXES = {
    "radius": "radius of the neighbourhood",
    "inputs": "input dimension",
    "layers": "hidden layers",
}


@dataclass(frozen=True)
class FigureSettings:
    """What is varied, and what stays.

    Attributes:
        radii: for the network ``inputs`` - ``hidden`` - ``inputs``.
        dimensions: inputs (and outputs) of networks with twice as many hidden neurons, at
            ``radius``.
        layers: numbers of hidden layers of ``deep_hidden`` neurons each, at ``deep_radius``.
        points: held-out points per setting.
        limit: wall-clock seconds for one solve.
        epochs: of training.
    """

    radii: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    dimensions: tuple[int, ...] = (2, 4, 6, 8, 10, 12)
    layers: tuple[int, ...] = (1, 2, 3, 4)
    inputs: int = 8
    hidden: int = 16
    radius: float = 0.5
    deep_hidden: int = 12
    deep_radius: float = 0.2
    points: int = 10
    limit: float = 20.0
    epochs: int = 100

    def panels(self) -> dict[str, list[tuple[float, tuple[int, ...], float]]]:
        """Per panel: the value on the x axis, the widths of the network, and the radius."""
        widths = (self.inputs, self.hidden, self.inputs)
        return {
            "radius": [(radius, widths, radius) for radius in self.radii],
            "inputs": [(size, (size, 2 * size, size), self.radius) for size in self.dimensions],
            "layers": [
                (count, (self.inputs, *[self.deep_hidden] * count, self.inputs), self.deep_radius)
                for count in self.layers
            ],
        }


def run(settings: FigureSettings, *, seed: int, report: Report) -> Results:
    """Seconds of processor time of every point, by both methods.

    Args:
        settings: what is measured.
        seed: of training.
        report: told about every setting that is finished.
    """
    panels = settings.panels()
    total, done = sum(map(len, panels.values())), 0
    results: Results = {"settings": asdict(settings), "seed": seed, "panels": {}}
    networks: dict[tuple[int, ...], tuple[Network, Array]] = {}
    for panel, rows in panels.items():
        measured = []
        for x, widths, radius in rows:
            if widths not in networks:
                networks[widths] = trained(widths, settings.epochs, seed=seed)
            network, points = networks[widths]
            measured.append(
                {
                    "x": x,
                    "widths": list(widths),
                    "radius": radius,
                    **_times(network, points, radius, settings),
                }
            )
            done += 1
            report("settings", done, total, nan)
        results["panels"][panel] = measured
    return results


def trained(widths: tuple[int, ...], epochs: int, *, seed: int) -> tuple[Network, Array]:
    """An obfuscator of these widths, and the held-out points whose neighbourhoods are certified,
    shape (n, inputs).
    """
    data = load_digits()
    flat = [images.reshape(len(images), -1) for images in (data.train_images, data.test_images)]
    pca = PCA(widths[0], whiten=True, random_state=0).fit(flat[0])
    inputs, targets = (
        torch.from_numpy(pca.transform(flat[0])).float(),
        torch.from_numpy(data.train_labels),
    )
    layers: list[torch.nn.Module] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for before, after in pairwise(widths):
            layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
        encoder, head = torch.nn.Sequential(*layers[:-1]), torch.nn.Linear(widths[-1], 10)
        optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.01)
        for _ in range(epochs):
            for batch in torch.randperm(len(inputs)).split(256):  # type: ignore[no-untyped-call]
                optimiser.zero_grad()
                released = encoder(inputs[batch])
                scores = head(released + torch.randn_like(released))
                torch.nn.functional.cross_entropy(scores, targets[batch]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
    return from_torch(encoder, (widths[0],)), pca.transform(flat[1])


def _times(network: Network, points: Array, radius: float, settings: FigureSettings) -> Results:
    """Seconds and how many finished, per method; a method is given up for a setting after two
    solves without an end.
    """
    domain, limits = (
        Box.cube(network.input_dimension, _HALF_WIDTH),
        Limits(cpu_seconds=settings.limit),
    )
    methods: dict[str, Callable[[Array], object]] = {
        "search": lambda point: lipschitz_constant(
            network, point, radius, domain=domain, limits=limits
        ),
        "milp": lambda point: milp_lipschitz(network, point, radius, domain=domain, limits=limits),
    }
    measured: Results = {}
    for name, solve in methods.items():
        seconds: list[float] = []
        unfinished = 0
        for point in points[: settings.points]:
            start = time.process_time()
            try:
                solve(point)
            except CertificationFailed:
                unfinished += 1
            seconds.append(time.process_time() - start)
            if unfinished == 2:
                break
        measured[name] = {"seconds": seconds, "unfinished": unfinished}
    return measured


def markdown(results: Results) -> str:
    """The figures as tables."""
    settings = results["settings"]
    lines = [
        "# What certifying one point costs",
        "",
        (
            "The papers' Figure 4. Median seconds of processor time on one thread for the exact "
            "local Lipschitz constant (l-infinity"
        ),
        (
            f"to l1) at {settings['points']} held-out digits; in brackets the slowest. `>`: two "
            "solves reached the limit of"
        ),
        (
            f"{settings['limit']:g} s of wall-clock time, with this much processor time spent, and "
            "the setting was given up. The"
        ),
        (
            f"papers state {PUBLISHED_SECONDS:g} s a picture (MNIST, the whole inference, Gurobi, "
            "on their processor)."
        ),
        "",
        "![seconds of processor time a point](lipschitz.png)",
        "",
        (
            f"Made by `python -m {_MODULE} --points {settings['points']} --limit "
            f"{settings['limit']:g}`."
        ),
        "",
    ]
    for panel, rows in results["panels"].items():
        lines += [
            f"| {_AXES[panel]} | network | radius | {_NAMES['search']} | {_NAMES['milp']} |",
            "|---|---|---|---|---|",
        ]
        for row in rows:
            network = "-".join(map(str, row["widths"]))
            cells = " | ".join(_cell(row[name]) for name in _NAMES)
            lines.append(f"| {row['x']:g} | {network} | {row['radius']:g} | {cells} |")
        lines.append("")
    return "\n".join(lines)


def figure(results: Results) -> Figure:
    """Three panels on one logarithmic axis of seconds: medians, the band from the fastest to the
    slowest point.
    """
    drawing = empty_drawing(10.5, 3.9)
    panels = results["panels"]
    for index, (axes, (panel, rows)) in enumerate(
        zip(drawing.subplots(1, len(panels), sharey=True), panels.items(), strict=True)
    ):
        for name in ("milp", "search"):
            _draw(axes, name, rows)
        axes.axhline(PUBLISHED_SECONDS, color="0.45", linestyle=":", linewidth=1.2)
        axes.set_yscale("log")
        axes.set_xlabel(_AXES[panel])
        values = [row["x"] for row in rows]
        if panel == "radius":
            axes.set_xscale("log")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
        axes.set_title(_title(panel, results["settings"]), fontsize=10, loc="left")
        axes.grid(axis="y", color="0.92")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        if index == 0:
            axes.set_ylabel("seconds of processor time a point")
            axes.text(
                values[0],
                PUBLISHED_SECONDS * 1.15,
                "papers: 2 s a picture (Gurobi)",
                fontsize=8,
                color="0.35",
            )
    handles, labels = drawing.axes[0].get_legend_handles_labels()
    line = require("matplotlib.lines", extra="plots").Line2D
    stopped = line(
        [], [], color="0.35", marker="^", markerfacecolor="white", linestyle="--", linewidth=1
    )
    drawing.legend(
        [*handles, stopped],
        [*labels, "given up: limit reached"],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return drawing


def _draw(axes: Axes, name: str, rows: Iterable[Results]) -> None:
    color, marker = _STYLES[name]
    finished = [row for row in rows if row[name]["unfinished"] < 2]
    stopped = [row for row in rows if row[name]["unfinished"] >= 2]
    middle, low, high = (
        [float(of(row[name]["seconds"])) for row in finished] for of in (np.median, np.min, np.max)
    )
    places = [float(row["x"]) for row in finished]
    axes.plot(
        places, middle, color=color, marker=marker, markersize=5, linewidth=1.8, label=_NAMES[name]
    )
    axes.fill_between(places, low, high, color=color, alpha=0.13, linewidth=0)
    if stopped:
        reached = [*places[-1:], *(float(row["x"]) for row in stopped)]
        heights = [*middle[-1:], *(float(np.max(row[name]["seconds"])) for row in stopped)]
        axes.plot(reached, heights, color=color, linestyle="--", linewidth=1)
        axes.plot(
            reached[-len(stopped) :],
            heights[-len(stopped) :],
            color=color,
            marker="^",
            markerfacecolor="white",
            linestyle="",
        )


def _title(panel: str, settings: Results) -> str:
    plain, deep = (settings["inputs"], settings["hidden"]), settings["deep_hidden"]
    titles = {
        "radius": f"(a) {plain[0]}-{plain[1]}-{plain[0]}",
        "inputs": f"(b) d-2d-d, radius {settings['radius']:g}",
        "layers": f"(c) {plain[0]}-{deep}-...-{plain[0]}, radius {settings['deep_radius']:g}",
    }
    return titles[panel]


def _cell(times: Results) -> str:
    middle, slowest = np.median(times["seconds"]), max(times["seconds"])
    return f"> {slowest:.1f}" if times["unfinished"] >= 2 else f"{middle:.3g} ({slowest:.3g})"


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, measure, print where the figure is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--out", type=Path, default=Path("runs") / "lipschitz-figure", help="output folder"
    )
    parser.add_argument(
        "--points", type=int, default=FigureSettings.points, help="held-out points per setting"
    )
    parser.add_argument(
        "--limit", type=float, default=FigureSettings.limit, help="seconds for one solve"
    )
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    with bar() as report:
        results = run(
            FigureSettings(points=chosen.points, limit=chosen.limit),
            seed=chosen.seed,
            report=report,
        )
    write_result(chosen.out / "lipschitz.json", json.dumps(results, indent=2))
    write_result(chosen.out / "lipschitz.md", markdown(results))
    write_result(chosen.out / "lipschitz.png", png(figure(results), dpi=150))
    print(chosen.out / "lipschitz.md")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
