"""Labels hidden among inputs like the nearest public row, over several seeds:
``python -m papers.posthoc.nearest_rows --data mnist``.

Each seed trains an embedder on the training pictures, embeds 20,000 of them, and solves a table of
labels on these for every graph and budget: rows joined to the nearest ones, few
or many, and rows joined to the nearest of another label. Beside each stands a simple table at the
same guarantee, whose labels weigh less with every edge to the nearest row that has them; and
randomised response on the label of the same classifier, which protects any two pictures. Accuracies
on the held-out part are expectations over the mechanism's own randomness, whose probabilities are
known exactly. Every cell is cached in the folder, so an interrupted run continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from papers.datasets import load
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.settings import EPSILONS, TableSettings, settings_of
from papers.seeded_command import (
    Cells,
    command_of,
    every_seed,
    leave,
    over,
    seeded_parser,
)
from papers.seeds import combined, with_error
from reticent.core.arrays import Integers
from reticent.datasets import Dataset
from reticent.demos.posthoc import RESPONSE, response_accuracy
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE
from reticent.training.label_tables import exact_table
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

ROWS, NODES = 20_000, 2_000
"""Public pictures, and those of them that inputs are compared with."""

GRAPHS = {
    "the 5 nearest": (5, False),
    "the 20 nearest": (20, False),
    "the 100 nearest": (100, False),
    "the 5 nearest of another label": (5, True),
}
"""How many rows each is joined to, and whether only to those of another label, by name."""

_FOLDS, _ITERATIONS = 3, 1000
_CLOSE = 0.002  # to the proved bound, in accuracy: no more iterations are made
_VOTES = 25
"""Nearest rows that tell the classifier how likely each label is."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Embeddings of one seed.

    Attributes:
        public, test: shapes (n, d) and (k, d).
        public_labels, test_labels: shapes (n,) and (k,).
    """

    public: Array
    test: Array
    public_labels: Integers
    test_labels: Integers


def classifier() -> KNeighborsClassifier:
    """Tells how likely labels are, for tables and for response alike."""
    return KNeighborsClassifier(_VOTES)


def run(
    data: Dataset,
    settings: TableSettings,
    folder: Path,
    *,
    epsilons: Sequence[float],
    rows: int,
    nodes: int,
    seed: int,
    report: Report,
) -> Results:
    """Every graph at each budget, and response; cells that stand in ``folder`` are read from there.

    Args:
        data: the data set that ``settings`` were made for.
        settings: of the embedder.
        folder: of this seed's cells and embedder; made if missing.
        epsilons: of one label.
        rows: public pictures that are used, drawn by ``seed``.
        nodes: how many of these inputs are compared with.
        seed: of the embedder, the rows and the nodes.
        report: told after every cell.

    Returns:
        For each graph, in words: what it is like, and for each epsilon the accuracy on held-out
        pictures, the worth on public ones and its bound; and response, by epsilon.
    """
    total = len(GRAPHS) * (len(epsilons) + 1) + 1
    cell = Cells(folder / "nearest-row-cells", "graphs", total, report)

    @cache
    def embedded() -> Rows:
        embedder = cached_embedder(data, settings, folder, seed=seed, report=report)
        chosen = np.random.default_rng(seed).permutation(len(data.train_images))[:rows]
        return Rows(
            embedder.embed(data.train_images[chosen]).astype(np.float64),
            embedder.embed(data.test_images).astype(np.float64),
            data.train_labels[chosen],
            data.test_labels,
        )

    exact = cell("label", lambda: _exact(embedded()))["accuracy"]
    results: Results = {"graphs": {}, "simple": {}, RESPONSE: {}}
    for number, name in enumerate(GRAPHS):
        results["graphs"][name] = {
            f"{epsilon:g}": cell(
                f"{number}-{epsilon:g}", partial(_cell, embedded, name, epsilon, nodes, seed)
            )
            for epsilon in epsilons
        }
        simple = cell(f"{number}-simple", partial(_simple, embedded, name, epsilons, nodes))
        results["simple"][name] = simple
    for epsilon in epsilons:
        response = response_accuracy(exact, epsilon=epsilon, classes=data.classes)
        results[RESPONSE][f"{epsilon:g}"] = {"accuracy": response}
    return results


def _exact(rows: Rows) -> Results:
    model = classifier().fit(rows.public, rows.public_labels)
    return {"accuracy": float(model.score(rows.test, rows.test_labels))}


def _cell(embedded: Any, name: str, epsilon: float, nodes: int, seed: int) -> Results:
    rows: Rows = embedded()
    neighbours, counterfactual = GRAPHS[name]
    order = np.random.default_rng(seed).permutation(len(rows.public))
    _, first = np.unique(rows.public[order], axis=0, return_index=True)
    chosen = order[np.sort(first)[:nodes]]
    points = rows.public[chosen]
    graph = (
        PublicGraph.counterfactual(points, rows.public_labels[chosen], neighbours=neighbours)
        if counterfactual
        else PublicGraph.nearest(points, neighbours=neighbours)
    )
    # at rows that it has not seen: what it remembers of single rows would be taken for worth
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    told = cross_val_predict(
        classifier(), rows.public, rows.public_labels, cv=folds, method="predict_proba"
    )
    cells = graph.cells(rows.public)
    weights = np.stack([np.bincount(cells, column, graph.size) for column in told.T]) / len(cells)
    found = exact_table(
        weights, lattice=graph, epsilon=epsilon, iterations=_ITERATIONS, close=_CLOSE
    )
    right = found.shares[rows.test_labels, graph.cells(rows.test)] / WHOLE
    return {
        "accuracy": float(right.mean()),
        "worth": found.worth,
        "bound": found.bound,
        **_like(graph, rows),
    }


def _simple(embedded: Any, name: str, epsilons: Sequence[float], nodes: int) -> Results:
    """Accuracy of the simple table by epsilon, on a graph of the first public rows."""
    rows: Rows = embedded()
    neighbours, counterfactual = GRAPHS[name]
    points, told = rows.public[:nodes], rows.public_labels[:nodes]
    graph = (
        PublicGraph.counterfactual(points, told, neighbours=neighbours)
        if counterfactual
        else PublicGraph.nearest(points, neighbours=neighbours)
    )
    labels = classifier().fit(rows.public, rows.public_labels).predict(points)
    classes, cells = int(rows.public_labels.max()) + 1, graph.cells(rows.test)
    return {
        f"{epsilon:g}": {
            "accuracy": float(
                simple_table(graph, labels, classes, epsilon)[cells, rows.test_labels].mean()
            )
        }
        for epsilon in epsilons
    }


def simple_table(graph: PublicGraph, labels: Integers, classes: int, epsilon: float) -> Array:
    """Probabilities of labels at nodes, shape (nodes, classes), that fall by one factor with every
    edge to the nearest node of that label; the largest factor that keeps ``epsilon`` between joined
    nodes, which is at least e^(epsilon/2) (McSherry and Talwar 2007).

    Args:
        graph: public.
        labels: shape (nodes,), the likeliest label of each.
        classes: how many labels.
        epsilon: above 0.
    """
    steps = np.full((graph.size, classes), float(graph.size))
    for label in range(classes):
        near = labels == label
        for step in range(graph.size):
            steps[near, label] = np.minimum(steps[near, label], step)
            wider = graph.touching_maximum(near)
            if np.array_equal(wider, near):
                break
            near = wider
    first, second = graph.edges.T
    low, high = 0.5 * epsilon, epsilon
    for _ in range(40):
        middle = 0.5 * (low + high)
        logs = -middle * steps
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        kept = np.abs(logs[first] - logs[second]).max() <= epsilon
        low, high = (middle, high) if kept else (low, middle)
    weights = np.exp(-low * steps)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _like(graph: PublicGraph, rows: Rows) -> Results:
    """What a graph joins: how many rows to each in the median, how many pairs of another label, the
    hops between two held-out inputs in the median, and the share of nodes in its largest part.
    """
    first, second = graph.edges.T
    labels = rows.public_labels[
        [int(np.flatnonzero((rows.public == point).all(axis=1))[0]) for point in graph.points]
    ]
    matrix = csr_matrix((np.ones(len(first)), (first, second)), shape=(graph.size, graph.size))
    parts = np.bincount(connected_components(matrix, directed=False)[1])
    some = rows.test[:500]
    hops = graph.hop_counts(some)[:, graph.cells(some)]
    return {
        "joined": float(np.median(np.bincount(graph.edges.ravel(), minlength=graph.size))),
        "other": float((labels[first] != labels[second]).mean()),
        "hops": float(np.median(hops[~np.eye(len(some), dtype=np.bool_)])),
        "largest": float(parts.max() / graph.size),
    }


def markdown(title: str, runs: Sequence[Results], *, notes: Sequence[str] = ()) -> str:
    """What each graph is worth, beside response, and what it hides.

    Args:
        title: first line.
        runs: what ``run`` gave for each seed.
        notes: lines below the title.
    """
    means, errors = combined(runs)
    graphs = means["graphs"]
    epsilons = list(means[RESPONSE])
    head = " | ".join(f"epsilon {epsilon}" for epsilon in epsilons)
    rule = "|---|" + "---|" * len(epsilons)
    lines = [f"# {title}", "", *notes, f"| joined to | {head} |", rule]
    for name, cells in graphs.items():
        shown = [
            with_error(cells[at]["accuracy"], errors["graphs"][name][at]["accuracy"])
            for at in epsilons
        ]
        lines.append(f"| {name}: the best table | {' | '.join(shown)} |")
        shown = [
            with_error(
                means["simple"][name][at]["accuracy"], errors["simple"][name][at]["accuracy"]
            )
            for at in epsilons
        ]
        lines.append(f"| {name}: weights by edges, no solver | {' | '.join(shown)} |")
    shown = [
        with_error(means[RESPONSE][at]["accuracy"], errors[RESPONSE][at]["accuracy"])
        for at in epsilons
    ]
    lines += [f"| {RESPONSE}: any two pictures | {' | '.join(shown)} |", ""]
    lines += [
        "How far tables may be from the best on their graphs, on public rows (bound less worth):",
        "",
        f"| joined to | {head} |",
        rule,
    ]
    for name, cells in graphs.items():
        gaps = [f"{cells[at]['bound'] - cells[at]['worth']:.4f}" for at in epsilons]
        lines.append(f"| {name} | {' | '.join(gaps)} |")
    lines += [
        "",
        "What the graphs are like:",
        "",
        (
            "| joined to | joined rows, median | pairs with two labels | hops between two held-out "
            "pictures, median | nodes in the largest part |"
        ),
        "|---|---|---|---|---|",
    ]
    for name, cells in graphs.items():
        like = cells[epsilons[0]]
        lines.append(
            f"| {name} | {like['joined']:.0f} | {like['other']:.1%} | {like['hops']:.1f} | "
            f"{like['largest']:.1%} |"
        )
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    module = "papers.posthoc.nearest_rows"
    parser = seeded_parser(module, __doc__, runs="posthoc-nearest-rows")
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    chosen = parser.parse_args(arguments)
    data, settings = load(chosen.data), settings_of(chosen.data)

    def measure(seed: int, folder: Path, report: Report) -> Results:
        return run(
            data,
            settings,
            folder,
            epsilons=chosen.epsilon,
            rows=min(ROWS, len(data.train_images)),
            nodes=NODES,
            seed=seed,
            report=report,
        )

    runs = every_seed(chosen, measure)
    notes = [
        f"Printed by `{command_of(chosen, module, epsilon=list(EPSILONS))}`.",
        "Accuracy of one released label on the held-out part: "
        + over(len(runs), embedders="each with an embedder of its own"),
        f"Of {min(ROWS, len(data.train_images)):,} public pictures {NODES:,} are nodes, which",
        "distances in the beta-VAE embedding (l2) are measured from.",
        "Delta is 0 and nothing is withheld. Neighbours are pictures whose nearest nodes are the",
        f"same or joined. Labels are told by a vote of the {_VOTES} nearest public pictures, for",
        "tables and for randomised response.",
        "",
    ]
    title = f"Labels hidden among inputs like the nearest public row: {chosen.data}"
    leave(chosen, "nearest-rows", runs, markdown(title, runs, notes=notes))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
