"""One code for several targets beside its rivals: ``python -m papers.power.targets``.

Adult, any two records: five targets from one code. ``CodeEncoder`` is fitted on public rows of each
cut. What it is worth on held-out rows is an expectation over its own noise, exactly: a server reads
each code by the public posterior table. The least share is that of the five in what the target has
that is served alone, by nodes made for it, at the whole epsilon, on the same rows. Beside it stand
releases at the same guarantee, from the same public models: a code for each target at a fifth of
epsilon (each server reads its own, or all five), one target drawn at random, randomised response on
all combinations of labels, and codebooks with randomised response, of which public rows choose the
size.

Reviews (``--data reviews``), any two embeddings, with a cap on which-of-64: the label, and the ten
nearest of 6,000 public reviews.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from papers.datasets import load_imdb
from papers.power.code_splits import Split, split
from papers.result_files import write_result
from papers.seeds import combined
from reticent.core.arrays import Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.guarantees import Replace
from reticent.mechanisms import AnyTwo
from reticent.systems import CodeEncoder, Recall
from reticent.systems.power.code_fitting import CodeNodes, PublicRows, code_nodes
from reticent.systems.power.code_query import CodeQuery, nearest_nodes
from reticent.systems.scores import information, roc_auc
from reticent.tables.frames import NamedRows
from reticent.training.staircases import Crowd, codebook, response_on

EPSILONS = {"adult": (1.0, 2.0, 4.0, 8.0), "reviews": (5.0, 8.0)}
TARGETS = ("income", "sex", "bachelor", "hours > 40", "married")
ASKED = {1.0: 0.30, 2.0: 0.37, 4.0: 0.60, 8.0: 0.90}
"""The least shares that are asked for."""

CROWD = 0.2
_LOOSER = 0.4
INDEX = 6_000
_HELD = 4_000
_NODES = {"adult": 48, "reviews": 64}
_GUESSING = 96
_WEIGHT = 3.0
"""Of the label in the sum, by accuracy: from 1.4 and 2 on public rows held out of the first cut."""

Rows = npt.NDArray[Any]
Array = npt.NDArray[np.float64]
Table = tuple[Array, Sequence[Array]]
"""Chances of each answer about held-out rows, and for each target what an answer says."""


def labels_of(rows: Rows, income: Rows, names: tuple[str, ...]) -> NamedRows:
    """The five targets of Adult's rows."""

    def column(name: str) -> Rows:
        return np.asarray(rows[:, names.index(name)])

    table = np.column_stack(
        [
            income,
            column("sex"),
            column("education-num").astype(float) >= 13,
            column("hours-per-week").astype(float) > 40,
            np.char.startswith(column("marital-status").astype(str), "Married"),
        ]
    )
    return NamedRows(table.astype(str), TARGETS)


def scores_of(chances: Array, told: Array, truth: Rows) -> tuple[float, float]:
    """Nats and AUC of one target on rows, exactly over the noise of the release.

    Args:
        chances: shape (n, answers).
        told: shape (answers, labels), probabilities.
        truth: shape (n,), numbers of labels.
    """
    weights = np.stack([chances[truth == code].sum(axis=0) for code in range(told.shape[1])], 1)
    seen = weights.sum(axis=0) > 0  # a schema may have words that no row holds
    told = told[:, seen] / told[:, seen].sum(axis=1, keepdims=True)
    return information(told, weights[:, seen]), roc_auc(told, weights[:, seen])


class Cut:
    """One cut: public rows with what their models say, and held-out rows with their targets."""

    def __init__(self, cut: Split) -> None:
        names = tuple(cut.schema.column_names)
        public, held = labels_of(*cut.public, names), labels_of(*cut.test, names)
        given = NamedRows(public.values[:, [0, 2, 3, 4]], ("income", *TARGETS[2:]))
        encoder = CodeEncoder(
            epsilon=1.0, targets=TARGETS, schema=cut.schema, random_state=cut.seed
        )
        start = time.process_time()
        self.public, _ = encoder.public(cut.public[0], given)
        self.models = self.public.known  # the models are fitted here
        self.seconds = time.process_time() - start
        self.rows = self.public.inputs.encode(cut.test[0])
        self.shares = [known.source.shares(self.rows) for known in self.models]
        self.truth = [
            np.searchsorted(known.source.labels.astype(str), held.values[:, place])
            if known.source.column is None
            else np.array(
                [known.source.labels.astype(str).tolist().index(v) for v in held.values[:, place]]
            )
            for place, known in enumerate(self.models)
        ]
        start = time.process_time()
        self.nodes = code_nodes(self.public, None, most=_NODES["adult"])
        _ = self.nodes.singles
        self.seconds += time.process_time() - start
        self.found: dict[tuple[int, float], Table] = {}

    def nodes_of(self, nodes: CodeNodes) -> Rows:
        """The node of each held-out row."""
        names = [known.name for known in nodes.public.known]
        used = [self.shares[TARGETS.index(name)] for name in names]
        return nearest_nodes(used, nodes.logs)

    def alone(self, place: int, epsilon: float) -> Table:
        """The best code for one target by itself."""
        if (place, epsilon) not in self.found:
            nodes = self.nodes.singles[place]
            table = self.nodes.alone_at(place, epsilon)
            told = [nodes.targets[0].told(table, nodes.masses)]
            self.found[place, epsilon] = table[self.nodes_of(nodes)], told
        return self.found[place, epsilon]

    def table(self, table: Array) -> Table:
        """A channel on the nodes of all targets."""
        told = [target.told(table, self.nodes.masses) for target in self.nodes.targets]
        return table[self.nodes_of(self.nodes)], told


def split_budget(cut: Cut, epsilon: float) -> Table:
    """Randomised response for each target at its part of epsilon, on whether the chance of its
    label is above the cut that public rows say tells most; the server reads all five answers.
    """
    wrong = 1.0 / (1.0 + np.exp(epsilon / len(TARGETS)))
    joined = np.ones((cut.nodes.cells.size, 1))
    for target, task in zip(cut.nodes.targets, cut.nodes.tasks, strict=True):
        chance = target.joint[:, 1] / target.joint.sum(axis=1)
        cuts = [np.where(chance > level, 1.0 - wrong, wrong) for level in np.sort(chance)[:-1]]
        best = max(cuts, key=lambda up: task.value(np.stack([up, 1.0 - up])).sum())
        both = np.stack([1.0 - best, best], axis=1)
        joined = (joined[:, :, None] * both[:, None, :]).reshape(len(joined), -1)
    return cut.table(joined)


def sampled(cut: Cut, epsilon: float) -> Table:
    """One target, drawn at random, at the whole of epsilon; the answer says which."""
    chances, told = [], []
    for place in range(len(TARGETS)):
        chance, [says] = cut.alone(place, epsilon)
        chances.append(chance / len(TARGETS))
        told.append(says)
    priors = [target.joint.sum(axis=0) for target in cut.nodes.targets]
    return np.concatenate(chances, axis=1), [
        np.concatenate(
            [
                told[other] if other == place else np.tile(priors[place], (len(told[other]), 1))
                for other in range(len(TARGETS))
            ]
        )
        for place in range(len(TARGETS))
    ]


def product(cut: Cut, epsilon: float) -> Table:
    """Randomised response on the likeliest label of each target, all at once: one code for each
    combination that a node has.
    """
    likeliest = [target.joint.argmax(axis=1) for target in cut.nodes.targets]
    code = np.zeros(len(likeliest[0]), dtype=np.int64)
    for labels in likeliest:
        code = 2 * code + labels
    members = np.unique(code, return_inverse=True)[1].astype(np.int64)
    return cut.table(response_on(members, epsilon=epsilon))


def codebooks(cut: Cut, epsilon: float) -> Table:
    """Clusters of nodes with randomised response; of several sizes the one whose least share on
    public rows is largest.
    """
    tasks = cut.nodes.tasks
    whole = []
    for place in range(len(TARGETS)):
        table = cut.nodes.alone_at(place, epsilon)
        whole.append(cut.nodes.singles[place].tasks[0].value(table.T).sum())

    def least(table: Array) -> float:
        kept = [t.value(table.T).sum() / own for t, own in zip(tasks, whole, strict=True)]
        return float(min(kept))

    shares = [t.joint / t.joint.sum(axis=1, keepdims=True) for t in cut.nodes.targets]
    tables = [
        response_on(
            codebook(shares, cut.nodes.masses, codes=codes, seed=cut.public.seed), epsilon=epsilon
        )
        for codes in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
        if codes <= len(cut.nodes.masses)
    ]
    return cut.table(max(tables, key=least))


RIVALS: dict[str, Callable[[Cut, float], Table]] = {
    "split budget, joint server": split_budget,
    "one sampled target": sampled,
    "product of labels": product,
    "codebook with response": codebooks,
}


def cut_results(cut: Cut, epsilon: float) -> dict[str, Any]:
    """Results of one cut: least shares on held-out rows of every method, and more about ours."""
    start = time.process_time()
    query = cut.nodes.best(epsilon)
    seconds = time.process_time() - start
    whole = []
    for place in range(len(TARGETS)):
        chances, [told] = cut.alone(place, epsilon)
        whole.append(scores_of(chances, told, cut.truth[place]))

    def shares(found: Table) -> list[tuple[float, float]]:
        scores = [scores_of(found[0], t, y) for t, y in zip(found[1], cut.truth, strict=True)]
        return [(nats / own, auc) for (nats, auc), (own, _) in zip(scores, whole, strict=True)]

    ours = shares(cut.table(query.mechanism.matrix))
    kept = [target.worth.kept for target in query.served if target.worth is not None]
    results: dict[str, Any] = {"least share": min(share for share, _ in ours)}
    for name, rival in RIVALS.items():
        results[name] = min(share for share, _ in shares(rival(cut, epsilon)))
    results |= {"on public rows": min(kept), "CPU s": cut.seconds + seconds}
    results |= {"nodes": cut.nodes.cells.size, "which of 64": query.crowd[0]}
    results |= {f"AUC {name}": auc for name, (_, auc) in zip(TARGETS, ours, strict=True)}
    return results


def reviews(seed: int) -> tuple[PublicRows, Array, Rows]:
    """Public reviews as fitting takes them, and held-out embeddings with their labels."""
    table = load_imdb()
    points = np.concatenate([table.train_rows, table.test_rows]).astype(np.float64)
    labels = np.concatenate([table.train_labels, table.test_labels])
    order = np.random.RandomState(seed).permutation(len(points))
    public, held = order[:-_HELD], order[-_HELD:]
    encoder = CodeEncoder(
        epsilon=1.0, targets=("target", Recall(10, rows=INDEX)), random_state=seed
    )
    return encoder.public(points[public], labels[public])[0], points[held], labels[held]


def weights_of(nodes: CodeNodes, epsilon: float) -> tuple[float, ...]:
    """One over what each target could have alone: a sum of shares in place of equal ones."""
    found = []
    for place in range(len(nodes.tasks)):
        own, task = nodes.single(place)
        found.append(1.0 / float(own.tasks[task].value(nodes.alone_at(place, epsilon).T).sum()))
    return tuple(found)


def by_accuracy(public: PublicRows, *, most: int) -> CodeNodes:
    """More nodes for the same public rows, on which a code of the label is worth its accuracy."""
    scored = replace(public, scoring="accuracy")
    vars(scored)["known"] = public.known  # the models are those of every scoring
    return code_nodes(scored, None, most=most)


def review_results(
    public: PublicRows,
    nodes: CodeNodes,
    guessing: CodeNodes,
    points: Array,
    labels: Rows,
    epsilon: float,
    ready: tuple[float, float],
) -> dict[str, Any]:
    """Accuracy and recall on held-out reviews: of ours under the cap, and of randomised response on
    parts of the space times the likeliest label.

    Args:
        public: public reviews.
        nodes: ours, by information.
        guessing: ours, by accuracy.
        points, labels: held-out reviews.
        epsilon: above 0.
        ready: processor seconds of either's models, nodes and nearest rows, which serve every
            epsilon.
    """
    index = public.dense[:INDEX]
    lengths = (index**2).sum(axis=1)
    near = np.argsort(lengths - 2.0 * points @ index.T, axis=1)[:, :10]
    start = time.process_time()
    query = nodes.best(epsilon, crowd=CROWD)
    seconds = time.process_time() - start
    rows = public.inputs.encode(points)

    def scored(chances: Array, label: Array, recall: Array, items: Rows) -> tuple[float, float]:
        guessed = public.known[0].source.labels[label.argmax(axis=1)]
        right = chances * (guessed[None, :] == labels[:, None])
        named = items[np.argsort(-recall, axis=1)[:, :10]]
        hits = np.stack([np.isin(near, one).mean(axis=1) for one in named], axis=1)
        return float(right.sum(axis=1).mean()), float((chances * hits).sum(axis=1).mean())

    def of(made: CodeQuery) -> tuple[float, float]:
        return scored(
            made.mechanism.matrix[made.nodes(rows)],
            made.posterior("target"),
            made.posterior("recall@10"),
            made.served[1].values,
        )

    accuracy, recall = of(query)
    results: dict[str, Any] = {"accuracy": accuracy, "recall@10": recall}
    results |= {"which of 64": query.crowd[0], "CPU s": ready[0] + seconds}
    for name, used, weight, crowd in (
        ("sum of shares", nodes, 1.0, CROWD),
        ("by accuracy, 96 nodes", guessing, _WEIGHT, CROWD),
        ("by accuracy, 96 nodes, cap 0.4", guessing, _WEIGHT, _LOOSER),
    ):
        start = time.process_time()
        of_label, of_recall = weights_of(used, epsilon)
        summed = used.best(epsilon, crowd=crowd, weights=(weight * of_label, of_recall))
        seconds = time.process_time() - start
        accuracy, recall = of(summed)
        results |= {f"{name}: accuracy": accuracy, f"{name}: recall@10": recall}
        if used is guessing and crowd == CROWD:
            results[f"{name}: CPU s"] = ready[1] + seconds
            results["of which models, nodes and nearest rows"] = ready[1]
    for parts in (1, 8):
        coarse, code = _parts_times_label(public, parts)
        table = response_on(np.arange(2 * parts), epsilon=epsilon)
        likely, closest = coarse.targets
        accuracy, recall = scored(
            table[code(rows)],
            likely.told(table, coarse.masses),
            closest.told(table, coarse.masses),
            closest.values,
        )
        name = "label response" if parts == 1 else f"{parts} parts x label, response"
        results |= {f"{name}: accuracy": accuracy, f"{name}: recall@10": recall}
        results[f"{name}: which of 64"] = Crowd(coarse.masses).chance(table)
    return results


def _parts_times_label(
    public: PublicRows, parts: int
) -> tuple[CodeNodes, Callable[[CodedRows], Integers]]:
    """Nodes that are a part of the space and the likeliest label, and the node of other rows."""
    centres = KMeans(parts, n_init=1, random_state=public.seed).fit(public.dense[~public.held])
    known = public.known[0]

    def code(rows: CodedRows) -> Integers:
        label = known.source.shares(rows).argmax(axis=1)
        return np.asarray(2 * centres.predict(rows.dense()).astype(np.int64) + label)

    members = 2 * centres.predict(public.dense).astype(np.int64) + known.shares.argmax(axis=1)
    nodes = CodeNodes(public, (), np.zeros((0, 0)), AnyTwo(2 * parts), Replace(1), None, members)
    return nodes, code


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=list(EPSILONS), default="adult")
    parser.add_argument("--seeds", type=int, default=3, help="how many cuts are averaged")
    parser.add_argument("--epsilons", type=float, nargs="+", help="default: those of the table")
    parser.add_argument("--folder", type=Path, default=Path("runs") / "power-targets")
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error("--seeds: expected at least 1")
    epsilons = chosen.epsilons or EPSILONS[chosen.data]
    found: dict[float, list[dict[str, Any]]] = {epsilon: [] for epsilon in epsilons}
    for seed in range(chosen.seeds):
        paths = {e: chosen.folder / f"{chosen.data}-{seed}-{e:g}.json" for e in epsilons}
        missing = [epsilon for epsilon, path in paths.items() if not path.is_file()]
        for epsilon, results in _cut(chosen.data, seed, missing):
            write_result(paths[epsilon], json.dumps(results))
            print(chosen.data, seed, epsilon, f"{results}", flush=True)
        for epsilon, path in paths.items():
            found[epsilon].append(json.loads(path.read_text(encoding="utf-8")))
    lines = [f"| | {' | '.join(f'epsilon {epsilon:g}' for epsilon in epsilons)} |"]
    lines.append("|---" * (len(epsilons) + 1) + "|")
    tables = {epsilon: combined(cuts) for epsilon, cuts in found.items()}
    for name in next(iter(tables.values()))[0]:
        cells = [f"{means[name]:.3f} ± {errors[name]:.3f}" for means, errors in tables.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if chosen.data == "adult":
        asked = [f"{ASKED[epsilon]:.2f}" if epsilon in ASKED else "" for epsilon in epsilons]
        lines.append(f"| least share that was asked for | {' | '.join(asked)} |")
    text = "\n".join(lines)
    write_result(chosen.folder / f"{chosen.data}.md", text + "\n")
    print(text)


def _cut(data: str, seed: int, epsilons: list[float]) -> Iterator[tuple[float, dict[str, Any]]]:
    """Results of one cut at each epsilon; what does not depend on epsilon is made once."""
    if not epsilons:
        return
    if data == "adult":
        cut = Cut(split("adult", seed=seed, tuning=False))
        for epsilon in epsilons:
            yield epsilon, cut_results(cut, epsilon)
        return
    public, points, labels = reviews(seed)
    start = time.process_time()
    _ = public.known
    models = time.process_time() - start

    def ready(make: Callable[[], CodeNodes]) -> tuple[CodeNodes, float]:
        start = time.process_time()
        nodes = make()
        _ = nodes.targets
        return nodes, models + time.process_time() - start

    nodes, few = ready(lambda: code_nodes(public, None, most=_NODES[data]))
    guessing, many = ready(lambda: by_accuracy(public, most=_GUESSING))
    for epsilon in epsilons:
        found = review_results(public, nodes, guessing, points, labels, epsilon, (few, many))
        yield epsilon, found


if __name__ == "__main__":
    main()
