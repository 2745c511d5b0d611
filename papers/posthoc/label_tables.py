"""Labels at a proved epsilon within a radius, every method at one guarantee, over several seeds:
``python -m papers.posthoc.label_tables --data mnist``.

Each seed trains an embedder, a classifier and a network of certified slope on training pictures,
fits tables and hop maps on nine tenths of them, and chooses thresholds, mechanisms and "auto" on
the last tenth. The command uses the held-out part for the accuracies of the table alone. These are
expectations over the mechanism's own randomness, whose probabilities are known exactly. Every cell
is cached in the folder, so an interrupted run continues.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from papers.datasets import load
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.measurements import Embedded, planned, training
from papers.posthoc.settings import EPSILONS, TableSettings, settings_of
from papers.result_files import cached_result, write_result
from papers.seeded_command import (
    command_of,
    every_seed,
    folder_of,
    over,
    seeded_parser,
)
from papers.seeds import combined, with_error
from reticent.core.arrays import Integers
from reticent.core.checks import count, positive
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.datasets import Dataset
from reticent.grids.shares import WHOLE
from reticent.mechanisms import FiniteChannel, LabelMechanism
from reticent.networks import Network
from reticent.systems.posthoc.label_lattice import LatticeRows, fitted_rules, label_lattice
from reticent.systems.posthoc.plans import (
    LABEL_MECHANISMS,
    LabelRule,
    Requirement,
    inner_mechanism,
    rule_plan,
)
from reticent.training.label_aware import train_label_release
from reticent.training.label_tables import ExactTable, cell_weights, exact_table
from reticent.training.networks import TrainingConfig
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]
Results = dict[str, Any]
Probabilities = Callable[[Array], Array]
"""From points, shape (n, d), to probabilities of labels, shape (n, classes)."""

TABLE_EPSILONS = (1.0, 2.0)
"""Where a table is solved for; beyond, hop maps are better."""

TABLE_RADIUS = 0.5
"""Least radius that a table is solved for: less leaves room for few coordinates or wide cells, and
what a table of such cells is worth is far below a certified slope, which gains from every smaller
radius.
"""

RADII = (0.5,)
"""Of the table, l-infinity in the embedding."""

ITERATIONS = 400
"""Of the solver of tables."""

_EMBEDDERS = "each with an embedder of its own"
_HELD_SHARE = 0.1
_PLAIN_HIDDEN = (128, 128)
_PLAIN_EPOCHS = 20
_PLAIN_RATE = 3e-3
_PLAIN_BATCH = 500
_MARGIN = 1.0 + 2.0**-30


@dataclass(frozen=True, eq=False)
class Rungs:
    """Everything that one seed's cells are computed from.

    Attributes:
        points: embeddings and their settings.
        report: told about training.
    """

    points: Embedded
    report: Report

    @property
    def held(self) -> int:
        """Number of training rows that nothing is fitted on."""
        return round(_HELD_SHARE * len(self.points.train))

    @cached_property
    def public(self) -> LatticeRows:
        """The rows that everything is fitted on, with the classifier that is best without noise."""
        points, labels = self.points.train[: -self.held], self.points.train_labels[: -self.held]
        config = TrainingConfig(
            epochs=_PLAIN_EPOCHS,
            batch_size=_PLAIN_BATCH,
            learning_rate=_PLAIN_RATE,
            seed=self.points.seed,
        )
        module = train_label_release(
            points,
            labels,
            planned(self.points, "response", epsilon=1.0),
            config,
            hidden=_PLAIN_HIDDEN,
            report=self.report,
        )
        return LatticeRows(points, labels, self._network(module))

    def adjacency(self, radius: float) -> Neighborhood:
        """Neighbours within ``radius``."""
        return Neighborhood(Norm.LINF, radius, "beta-VAE embedding of the picture")

    def best(self, rules: Iterable[tuple[str, Probabilities]]) -> Results:
        """The one that is right most often on the held rows: its accuracies and its name."""
        found: Results = {"held": -math.inf}
        points = self.points
        for name, probabilities in rules:
            held = _right(
                probabilities(points.train[-self.held :]), points.train_labels[-self.held :]
            )
            if held > found["held"]:
                test = _right(probabilities(points.test), points.test_labels)
                found = {"held": held, "accuracy": test, "by": name}
        return found

    def rule(self, name: str, rules: Iterable[LabelRule]) -> Results:
        """The best of several mechanisms that need no Lipschitz constant."""
        network = self.public.network

        def probabilities(rule: LabelRule) -> Probabilities:
            return lambda points: rule.at(points, network.forward(points)).T / WHOLE

        return self.best((name, probabilities(rule)) for rule in rules)

    def slope(self, *, epsilon: float, radius: float) -> Results:
        """The best of the mechanisms that rest on a network's certified slope."""
        release = planned(self.points, "noisy-max", epsilon=epsilon)
        module = train_label_release(
            self.public.points,
            self.public.labels,
            replace(release, radius=radius),
            training(self.points),
            hidden=self.points.settings.hidden,
            report=self.report,
        )
        network = self._network(module)
        bound = self.points.bound(network, "spread")
        requirement = Requirement(epsilon=epsilon, delta=0.0, adjacency=self.adjacency(radius))
        proposal = bound.global_bound() * _MARGIN

        def probabilities(name: str) -> Probabilities:
            plan = replace(rule_plan(name, epsilon), proposal=proposal)
            mechanism = inner_mechanism(network, bound, plan, requirement)
            assert isinstance(mechanism, LabelMechanism)
            return lambda x: mechanism.probabilities(network.forward(x))

        return self.best((name, probabilities(name)) for name in LABEL_MECHANISMS)

    def table(self, *, epsilon: float, radius: float, iterations: int) -> Results:
        """The table, what it is worth on public weights, and the bound on every such table."""
        lattice = label_lattice(self.public, radius=radius)
        rows, seed = self.public, self.points.seed
        weights = cell_weights(rows.points, rows.posterior, lattice=lattice, seed=seed)
        found: ExactTable = exact_table(
            weights, lattice=lattice, epsilon=epsilon, iterations=iterations, report=self.report
        )
        table = FiniteChannel(
            nodes=lattice, shares=found.shares, epsilon=epsilon, adjacency=self.adjacency(radius)
        )
        public = table.probabilities(self.public.points)
        return {
            **self.rule("table", [table]),
            "worth": found.worth,
            "solved": found.solved,
            "bound": found.bound,
            "public": _right(public, self.public.labels),
            "cells": float(lattice.size),
            "iterations": float(found.iterations),
        }

    def _network(self, module: nn.Module) -> Network:
        return self.points.network(module)


def run(
    data: Dataset,
    settings: TableSettings,
    folder: Path,
    *,
    seed: int,
    radius: float,
    epsilons: Iterable[float],
    iterations: int = ITERATIONS,
    table_radius: float = TABLE_RADIUS,
    report: Report,
) -> Results:
    """All accuracies of one seed and radius; cells that stand in ``folder`` are read from there.

    Args:
        data: the data set that ``settings`` were made for.
        settings: of the embedder and of the network of certified slope.
        folder: of this seed; made if missing.
        seed: of training and of the split.
        radius: of neighbours.
        epsilons: of one label.
        iterations: of the solver of tables.
        table_radius: least radius that tables are solved for.
        report: told about training.

    Raises:
        InvalidParameter: ``iterations`` below 1 or ``table_radius`` that is not above 0, before
            anything is made.
    """
    count(iterations, name="iterations")
    positive(table_radius, name="table_radius")
    cells = folder / "label-cells"
    cells.mkdir(parents=True, exist_ok=True)
    embedder = cached_embedder(data, settings, folder, seed=seed, report=report)
    rungs = Rungs(Embedded.of(data, embedder, settings, seed=seed), report)

    def cell(name: str, compute: Callable[[], Results]) -> Results:
        return cached_result(cells / f"{name}-{radius:g}.json", compute)

    def rule(name: str, epsilon: float) -> Results:
        near = rungs.adjacency(radius)
        rules = fitted_rules(name, rungs.public, epsilon=epsilon, adjacency=near, seed=seed)
        return rungs.rule(name, rules)

    results: Results = {}
    for epsilon in epsilons:
        key = f"{epsilon:g}"
        found = {
            name: cell(f"{name}-{key}", partial(rule, name, epsilon))
            for name in ("response", "hop")
        }
        slope = partial(rungs.slope, epsilon=epsilon, radius=radius)
        found["slope"] = cell(f"slope-{key}", slope)
        if epsilon in TABLE_EPSILONS and radius >= table_radius:
            table = partial(rungs.table, epsilon=epsilon, radius=radius, iterations=iterations)
            steps = "" if iterations == ITERATIONS else f"-{iterations}-iterations"
            found["table"] = cell(f"table-{key}{steps}", table)
        chosen = max(found, key=lambda name: found[name]["held"])
        found["auto"] = {
            "held": found[chosen]["held"],
            "accuracy": found[chosen]["accuracy"],
            "by": chosen,
        }
        results[key] = found
    return results


ROWS = {
    "response": "randomised response on the exact label (any two inputs)",
    "slope": "noisy max, stability: certified slope",
    "hop": "hop map",
    "table": "optimal table, exact",
    "auto": "**auto: the best on calibration rows**",
}


def markdown(
    data: str, seeds: int, by_radius: dict[float, tuple[Results, Results]], *, command: str
) -> str:
    """Every method's accuracy on the held-out part, with standard errors over seeds.

    Args:
        data: name of the data set.
        seeds: how many.
        by_radius: means and standard errors.
        command: that prints it.
    """
    lines = [
        f"# Labels at a proved epsilon: {data}",
        "",
        f"Printed by `{command}`.",
        f"Accuracies on the held-out part: {over(seeds, embedders=_EMBEDDERS)}",
        "Delta is 0 and nothing is withheld. Neighbours lie within R (l-infinity)",
        "in the beta-VAE embedding. Everything is fitted on nine tenths of the training part and",
        "chosen on the last tenth.",
        "",
    ]
    for radius, (means, errors) in by_radius.items():
        head = " | ".join(f"epsilon {epsilon}" for epsilon in means)
        lines += [f"## R = {radius:g}", "", f"| | {head} |", "|---|" + "---|" * len(means)]
        for name, title in ROWS.items():
            if all(name not in found for found in means.values()):
                continue
            cells = [_cell(means[e].get(name), errors[e].get(name), "accuracy") for e in means]
            lines.append(f"| {title} | {' | '.join(cells)} |")
        chosen = " | ".join(means[e]["auto"]["by"] for e in means)
        lines += [f"| chosen | {chosen} |", ""]
        solved = [e for e in means if "table" in means[e]]
        if not solved:
            continue
        head = " | ".join(f"epsilon {epsilon}" for epsilon in solved)
        lines += [
            "What the table is worth on the public weights that it was made for, and the proved",
            "upper bound on every table over the same cells:",
            "",
            f"| | {head} |",
            "|---|" + "---|" * len(solved),
        ]
        for key, title in (
            ("worth", "exact table, public weights"),
            ("solved", "before it was repaired (breaks constraints), public weights"),
            ("bound", "proved bound, public weights"),
            ("public", "exact table, labels of the rows it was fitted on"),
        ):
            cells = [_cell(means[e]["table"], errors[e]["table"], key) for e in solved]
            lines.append(f"| {title} | {' | '.join(cells)} |")
        for key, title in (("cells", "cells"), ("iterations", "iterations of the solver")):
            cells = [f"{means[e]['table'][key]:,.0f}" for e in solved]
            lines.append(f"| {title} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    parser = seeded_parser("papers.posthoc.label_tables", __doc__, runs="label-tables")
    parser.add_argument("--radius", type=float, nargs="+", default=list(RADII))
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument(
        "--iterations",
        type=int,
        default=ITERATIONS,
        help=f"of the solver of tables (default: {ITERATIONS})",
    )
    parser.add_argument(
        "--table-radius",
        type=float,
        default=TABLE_RADIUS,
        help=f"least radius that tables are solved for (default: {TABLE_RADIUS})",
    )
    chosen = parser.parse_args(arguments)
    data, settings = load(chosen.data), settings_of(chosen.data)

    def measure(radius: float, seed: int, folder: Path, report: Report) -> Results:
        return run(
            data,
            settings,
            folder,
            seed=seed,
            radius=radius,
            epsilons=chosen.epsilon,
            iterations=chosen.iterations,
            table_radius=chosen.table_radius,
            report=report,
        )

    by_radius = {
        radius: combined(every_seed(chosen, partial(measure, radius))) for radius in chosen.radius
    }
    folder = folder_of(chosen)
    write_result(
        folder / "results.json",
        json.dumps({f"{r:g}": list(found) for r, found in by_radius.items()}, indent=2),
    )
    command = command_of(
        chosen,
        "papers.posthoc.label_tables",
        radius=list(RADII),
        epsilon=list(EPSILONS),
        iterations=ITERATIONS,
        table_radius=TABLE_RADIUS,
    )
    page = markdown(chosen.data, len(chosen.seeds), by_radius, command=command)
    write_result(folder / "table.md", page)
    print(folder / "table.md")


def _right(probabilities: Array, labels: Integers) -> float:
    """Expected accuracy: the mean probability of the right label."""
    return float(probabilities[np.arange(len(labels)), labels].mean())


def _cell(mean: Results | None, error: Results | None, key: str) -> str:
    if mean is None or error is None:
        return ""
    return with_error(mean[key], error[key])


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
