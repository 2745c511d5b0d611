"""Every released function at one guarantee, over seeds and budgets:
``python -m papers.posthoc.ladder --data mnist``.

The embedding as it is, its live coordinates, public linear maps, a published obfuscator, and
networks trained through the noise from random weights and from the live coordinates. Each is
certified for the *original* embedding and released by the mechanism that does best for it on
calibration rows; "auto" is the one with the best score there. Beside them stands randomised
response on a classifier's label, which serves one task and protects any two inputs. Delta is 0. The
noise depends on the radius over epsilon alone, so cells of one ratio are one measurement. Every
cell is cached in the folder, so an interrupted run continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from papers.datasets import load
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.settings import EPSILONS, TableSettings, settings_of
from papers.seeded_command import (
    Cells,
    command_of,
    every_seed,
    folder_of,
    leave,
    seeded_parser,
)
from papers.seeds import combined, with_error
from reticent.core.checks import count
from reticent.core.errors import InvalidParameter
from reticent.datasets import Dataset
from reticent.demos.posthoc import RESPONSE, response_accuracy
from reticent.mechanisms import AdditiveMechanism
from reticent.published import PublishedObfuscator
from reticent.systems import Calibration, PosthocEncoder
from reticent.systems.posthoc.calibration import noise_adder
from reticent.training.embedder import Embedder
from reticent.training.heads import HeadConfig, train_head
from reticent.training.parts import (
    Identity,
    LiveCoordinates,
    NoiseAware,
    PublicDiscriminants,
    PublicPCA,
)
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

RADII = (0.5, 0.2, 0.1)
"""Radii of the table, l-infinity in the embedding."""

LIVE, TRAINED = "live coordinates", "trained, from the live coordinates"

_DRAWS = 3
_LABEL_EPOCHS = 20
_SERVER_EPOCHS = 5


@dataclass(frozen=True, eq=False)
class Rungs:
    """Embeddings of one data set, and what is tried on them.

    Attributes:
        train, server, test: embeddings, shapes (n, d), (m, d) and (k, d): what is released is
            fitted on the first, servers learn from the second.
        train_labels, server_labels, test_labels: shapes (n,), (m,) and (k,).
        settings: fixed settings.
        seed: of rows, training, the split for calibration, and of the experiment's noise (so: not
            private).
        report: told about training.
    """

    train: Array
    server: Array
    test: Array
    train_labels: npt.NDArray[np.int64]
    server_labels: npt.NDArray[np.int64]
    test_labels: npt.NDArray[np.int64]
    settings: TableSettings
    seed: int
    report: Report

    @classmethod
    def of(
        cls,
        data: Dataset,
        embedder: Embedder,
        settings: TableSettings,
        *,
        rows: int | None,
        seed: int,
        report: Report,
    ) -> Rungs:
        """Both parts of ``data``, embedded; what is released is fitted on at most ``rows`` rows of
        the training part.
        """
        chosen = np.random.default_rng(seed).permutation(len(data.train_images))[:rows]
        server = embedder.embed(data.train_images).astype(np.float64)
        return cls(
            server[chosen],
            server,
            embedder.embed(data.test_images).astype(np.float64),
            data.train_labels[chosen],
            data.train_labels,
            data.test_labels,
            settings,
            seed,
            report,
        )

    @cached_property
    def published(self) -> Any:
        """The obfuscator of the papers' best row, trained once: it knows of no noise."""
        part = PublishedObfuscator(
            row="ARL-C-N",
            outputs=self.settings.published_outputs,
            hidden=self.settings.published_hidden,
            epochs=self.settings.published_epochs,
            batch_size=256,
            random_state=self.seed,
        )
        return part.fit(self.train, self.train_labels, report=self.report).network()

    def parts(self) -> dict[str, Any]:
        """What is tried, by name."""
        return {
            "identity": Identity(),
            LIVE: LiveCoordinates(),
            "principal components": PublicPCA(),
            "class discriminants": PublicDiscriminants(),
            "published, ARL-C-N": self.published,
            "trained, from random weights": NoiseAware(),
            TRAINED: NoiseAware(start=LiveCoordinates()),
        }

    def cell(self, *, epsilon: float, radius: float) -> Results:
        """Every released function at one budget, and "auto"."""
        found: Results = {
            name: self._released(part, epsilon=epsilon, radius=radius)
            for name, part in self.parts().items()
        }
        chosen = max(found, key=lambda name: found[name]["score"])
        found["auto"] = {**found[chosen], "by": chosen}
        return found

    def label(self) -> Results:
        """How often a classifier of the embedding is right without any noise."""
        config = HeadConfig(epochs=_LABEL_EPOCHS, seed=self.seed)
        head = train_head(self.server, self.server_labels, config, noise=None, report=self.report)
        return {"accuracy": float(np.mean(head.predict(self.test) == self.test_labels))}

    def _released(self, part: Any, *, epsilon: float, radius: float) -> Results:
        encoder = PosthocEncoder(
            epsilon=epsilon,
            delta=0.0,
            radius=radius,
            embedder="identity",
            obfuscator=part,
            calibration=Calibration(path="global"),
            random_state=self.seed,
        ).fit(self.train, self.train_labels)
        query = encoder.query_
        assert isinstance(query.mechanism, AdditiveMechanism)
        head = train_head(
            query.network.forward(query.points(self.server)),
            self.server_labels,
            HeadConfig(epochs=_SERVER_EPOCHS, seed=self.seed),
            noise=noise_adder(query.plan.mechanism, query.mechanism.scale),
            report=self.report,
        )
        seen = (encoder.simulate(self.test, seed=draw).values for draw in range(_DRAWS))
        return {
            "score": query.plan.utility,
            "accuracy": float(np.mean([head.predict(rows) == self.test_labels for rows in seen])),
            "mechanism": query.plan.mechanism,
            "outputs": float(query.network.output_dimension),
        }


def run(
    data: Dataset,
    settings: TableSettings,
    folder: Path,
    *,
    radii: Sequence[float],
    epsilons: Sequence[float],
    rows: int | None = None,
    seed: int,
    embedder_seed: int,
    report: Report,
) -> Results:
    """All rungs at each radius and budget; cells that stand in ``folder`` are read from there.

    A cell is measured at the first radius that asks for its ratio to epsilon.

    Args:
        data: the data set that ``settings`` were made for.
        settings: fixed settings.
        folder: cells and embedders, by seed; made if missing. Cells of other ``rows`` or of
            another seed's embedder stand beside each other.
        radii: of neighbours, l-infinity.
        epsilons: of one answer.
        rows: most training rows that what is released is fitted and chosen on, drawn by ``seed``;
            None for all. The embedder and the servers learn from all in any case.
        seed: of everything after the embedder.
        embedder_seed: of the embedder.
        report: told about every finished training epoch and cell.

    Raises:
        InvalidParameter: ``rows`` that is no number of training rows, before anything is made.
    """
    given = len(data.train_images)
    if rows is not None and count(rows, name="rows") > given:
        raise InvalidParameter(f"rows={rows}: expected at most the {given} rows of training")
    total = len(radii) * len(epsilons) + 1
    of_what = "" if rows is None else f"-{rows}-rows"
    if embedder_seed != seed:
        of_what += f"-embedder-{embedder_seed}"
    cell = Cells(folder / f"seed{seed}" / "ladder-cells", "ladder", total, report)
    embedders = folder / f"seed{embedder_seed}"
    embedders.mkdir(parents=True, exist_ok=True)

    @cache
    def rungs() -> Rungs:
        embedder = cached_embedder(data, settings, embedders, seed=embedder_seed, report=report)
        return Rungs.of(data, embedder, settings, rows=rows, seed=seed, report=report)

    exact = cell(f"label{of_what}", lambda: rungs().label())["accuracy"]
    results: Results = {}
    for radius in radii:
        results[f"{radius:g}"] = {}
        for epsilon in epsilons:
            measured = partial(_measured, rungs, epsilon=epsilon, radius=radius)
            found = cell(f"{radius / epsilon:.6g}{of_what}", measured)
            response = response_accuracy(exact, epsilon=epsilon, classes=data.classes)
            results[f"{radius:g}"][f"{epsilon:g}"] = {**found, RESPONSE: {"accuracy": response}}
    return results


def _measured(rungs: Callable[[], Rungs], *, epsilon: float, radius: float) -> Results:
    return rungs().cell(epsilon=epsilon, radius=radius)


_SHOWN = {
    "auto": "**auto: the best on calibration rows**",
    RESPONSE: f"{RESPONSE}: one task, any two pictures",
}
"""Rows that are no rungs of the embedding."""


def markdown(title: str, runs: Sequence[Results], *, notes: Sequence[str] = ()) -> str:
    """Accuracies on the held-out part, with standard errors over seeds.

    Args:
        title: first line.
        runs: what ``run`` gave for each seed.
        notes: lines below the title.
    """
    means, errors = combined(runs)
    lines = [f"# {title}", "", *notes]
    for radius, by_epsilon in means.items():
        head = " | ".join(f"epsilon {epsilon}" for epsilon in by_epsilon)
        lines += [f"## R = {radius}", "", f"| | {head} |", "|---|" + "---|" * len(by_epsilon)]
        for name in next(iter(by_epsilon.values())):
            cells = [
                with_error(found[name]["accuracy"], errors[radius][epsilon][name]["accuracy"])
                for epsilon, found in by_epsilon.items()
            ]
            shown = _SHOWN.get(name, name)
            lines.append(f"| {shown} | {' | '.join(cells)} |")
        chosen = " | ".join(found["auto"]["by"] for found in by_epsilon.values())
        lines.append(f"| chosen | {chosen} |")
        ahead = " | ".join(_ahead(found) for found in by_epsilon.values())
        lines.append(f"| ahead on the held-out part | {ahead} |")
        for title_, first, second in (
            ("training that starts at the live coordinates, less these", TRAINED, LIVE),
            ("auto, less the best of all on the held-out part", "auto", None),
        ):
            cells = [
                with_error(*_difference(runs, means, radius, epsilon, first, second), sign="+")
                for epsilon in by_epsilon
            ]
            lines.append(f"| {title_} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _difference(
    runs: Sequence[Results],
    means: Results,
    radius: str,
    epsilon: str,
    first: str,
    second: str | None,
) -> tuple[float, float]:
    """Mean and standard error over seeds of one accuracy less another (None: the rung whose mean
    is the best) of the same seed.
    """
    found = means[radius][epsilon]
    if second is None:
        second = _ahead(found)
    pairs = [
        {"less": run[radius][epsilon][first]["accuracy"] - run[radius][epsilon][second]["accuracy"]}
        for run in runs
    ]
    mean, error = combined(pairs)
    return mean["less"], error["less"]


def _ahead(found: Results) -> str:
    """The rung whose accuracy is the best."""
    rungs = [name for name in found if name not in _SHOWN]
    return max(rungs, key=lambda name: float(found[name]["accuracy"]))


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    parser = seeded_parser("papers.posthoc.ladder", __doc__, runs="posthoc-ladder")
    parser.add_argument("--radius", type=float, nargs="+", default=list(RADII))
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument(
        "--rows", type=int, help="training rows for what is released (default: all)"
    )
    parser.add_argument(
        "--one-embedder", action="store_true", help="that of the first seed, for all seeds"
    )
    chosen = parser.parse_args(arguments)
    data, settings = load(chosen.data), settings_of(chosen.data)

    def measure(seed: int, _: Path, report: Report) -> Results:
        return run(
            data,
            settings,
            folder_of(chosen),
            radii=chosen.radius,
            epsilons=chosen.epsilon,
            rows=chosen.rows,
            seed=seed,
            embedder_seed=chosen.seeds[0] if chosen.one_embedder else seed,
            report=report,
        )

    runs = every_seed(chosen, measure)
    notes = _notes(chosen)
    title = f"Released functions at a proved epsilon: {chosen.data}"
    leave(chosen, "ladder", runs, markdown(title, runs, notes=notes))


def _notes(chosen: argparse.Namespace) -> list[str]:
    seeds, rows = len(chosen.seeds), chosen.rows
    command = command_of(
        chosen,
        "papers.posthoc.ladder",
        radius=list(RADII),
        epsilon=list(EPSILONS),
        rows=None,
        one_embedder=False,
    )
    over = (
        "of one seed"
        if seeds == 1
        else f"mean over {seeds} seeds ± its standard error, "
        + ("all with one embedder" if chosen.one_embedder else "each with an embedder of its own")
    )
    used = "the training part" if rows is None else f"{rows:,} training pictures"
    return [
        f"Printed by `{command}`.",
        f"Accuracy of the server on the held-out part: {over}.",
        f"What is released is fitted on {used}: four fifths for training, the rest",
        "to choose each row's mechanism and size. Embedders and servers learn from the whole",
        "training part, servers with fresh noise on every batch. Delta is 0, nothing is withheld.",
        "Neighbours lie within R (l-infinity) in the beta-VAE embedding; every row is",
        "certified for that embedding. The noise depends on R / epsilon alone: cells of one ratio",
        "are one measurement. Randomised response gives the label of a classifier that learns from",
        "the whole training part, by expectation.",
        "",
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
