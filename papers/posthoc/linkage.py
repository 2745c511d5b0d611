"""Linkage of embeddings: ``python -m papers.posthoc.linkage --data reviews``.

Embeddings of hundreds of numbers in l2, sentence embeddings of reviews or features of pictures
(``--data cifar10``), released within a radius that public rows choose: the distance to the nearest
other row in the median, and the least radius for which half of the rows have ten others within it.
Released are a label, 1 to 32 values of the embedding, or all of it. What a server learns about the
label, and how often someone who knows 64 inputs names the right one after 1 and 4 answers, beside
the proved caps. Every cell is cached in the folder, so an interrupted run continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from papers.posthoc.linkage_inputs import SOURCES, Inputs, Source, classifier
from papers.seeded_command import (
    Cells,
    command_of,
    every_seed,
    folder_of,
    leave,
    over,
    seeded_parser,
)
from papers.seeds import combined, with_error
from reticent.attacks import attack_fitted
from reticent.radius import survey_radius
from reticent.systems import Calibration, PosthocClassifier, PosthocEncoder
from reticent.training.heads import HeadConfig, train_head
from reticent.training.progress import Report, bar

Results = dict[str, Any]

EPSILONS = (1.0, 5.0, 20.0)
ANSWERS = (1, 4)
CANDIDATES = 64
_ATTACKED = 1_000

LABELS = {"randomised response on the label: any two {}": "response", "label": "auto"}
"""Mechanisms of labels that are released, by name; "auto" is the best on calibration rows."""

AUTO = "**auto: of the vectors the best on calibration rows**"


def labels_of(source: Source) -> dict[str, str]:
    """Mechanisms of labels by the name of their row."""
    return {name.format(source.several): mechanism for name, mechanism in LABELS.items()}


def run(
    inputs: Inputs,
    source: Source,
    folder: Path,
    *,
    epsilons: Sequence[float],
    seed: int,
    trials: int = 10_000,
    report: Report,
) -> Results:
    """Releases at each radius and budget; cells that stand in ``folder`` are read from there.

    Args:
        inputs: embeddings.
        source: what they are, and what is released of them.
        folder: of this seed's cells; made if missing.
        epsilons: of one answer.
        seed: of training, of the candidates, and of the experiment's noise (so: not private).
        trials: answers of each game.
        report: told after every cell.

    Returns:
        For each rule of the radius, then epsilon, then name of what was released: its mechanism,
        the accuracy of the label on held-out rows ("accuracy" with a server taught by public rows,
        "taught" with one taught by answers about private rows, where there are any), and the games.
    """
    labels, vectors = labels_of(source), source.vectors
    total = len(source.rules) * len(epsilons) * (len(labels) + len(vectors))
    cell = Cells(folder / "linkage-cells", "linkage", total, report)
    results: Results = {}
    for place, rule in source.rules.items():
        survey = survey_radius(inputs.public, radii=[], epsilons=[1.0], norm="l2", neighbour=place)
        radius = survey.rules[0].radius
        by_epsilon: Results = {}
        for epsilon in epsilons:
            found: Results = {}
            for number, name in enumerate((*labels, *vectors)):
                measured = partial(_cell, name, inputs, source, radius, epsilon, seed, trials)
                found[name] = cell(f"{number}-{place}-{epsilon:g}", measured)
            chosen = max(vectors, key=lambda name: float(found[name]["score"]))
            found[AUTO] = {**found[chosen], "released": chosen}
            by_epsilon[f"{epsilon:g}"] = found
        results[rule] = {"radius": radius, "by epsilon": by_epsilon}
    return results


def _cell(
    name: str,
    inputs: Inputs,
    source: Source,
    radius: float,
    epsilon: float,
    seed: int,
    trials: int,
) -> Results:
    shared: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": 0.0,
        "radius": radius,
        "input_norm": "l2",
        "embedder": "identity",
        "calibration": Calibration(path="global"),
        "random_state": seed,
    }
    rows, labels, held = inputs.public, inputs.public_y, inputs.held
    vectors = source.vectors
    system: PosthocEncoder | PosthocClassifier
    right: Results
    if name in vectors:
        system = PosthocEncoder(obfuscator=vectors[name], **shared).fit(rows, labels)
        right = _read(system, inputs, seed)
    else:
        logits = classifier(rows, labels, strength=source.strength)
        mechanism = labels_of(source)[name]
        system = PosthocClassifier(classifier=logits, mechanism=mechanism, **shared)
        shares = system.fit(rows, labels).probabilities(held)
        right = {"accuracy": float(shares[np.arange(len(shares)), inputs.held_y].mean())}
    attack = attack_fitted(
        system,
        held[:_ATTACKED],
        candidates=CANDIDATES,
        trials=trials,
        answers=ANSWERS,
        decoder=False,
        seed=seed,
    )
    linked = [game for game in attack.games if game.name.startswith(f"which of {CANDIDATES}")]
    return {
        "released": system.query_.plan.mechanism,
        "score": system.query_.plan.utility,
        **right,
        "named": [game.success for game in linked],
        "caps": [game.cap for game in linked],
        "exceeded": float(sum(game.exceeded for game in linked)),
    }


def _read(system: PosthocEncoder, inputs: Inputs, seed: int) -> Results:
    """How often a server is right about held-out rows that it sees released values of."""
    assert system.head_ is not None
    assert system.classes_ is not None
    asked = len(inputs.asked)
    both = np.concatenate([inputs.asked, inputs.held])
    released = system.simulate(both, seed=seed).values
    seen = released[asked:]
    right = {
        "accuracy": float((system.classes_[system.head_.predict(seen)] == inputs.held_y).mean())
    }
    if asked:
        server = train_head(
            released[:asked], inputs.asked_y, HeadConfig(seed=seed, batch_size=100), noise=None
        )
        right["taught"] = float((server.predict(seen) == inputs.held_y).mean())
    return right


def markdown(runs: Sequence[Results], source: Source, *, command: str) -> str:
    """A table of all releases for each radius and budget, with standard errors over seeds.

    Args:
        runs: what ``run`` gave for each seed.
        source: what was released of.
        command: that prints it.
    """
    means, errors = combined(runs)
    several = source.several
    lines = [
        f"# Linkage of {several}",
        "",
        f"Printed by `{command}`.",
        *source.about,
        f"{source.task.capitalize()}: right on held-out {several}. Named: someone who knows",
        f"{CANDIDATES} {several}, one of which was answered about, and goes by the exact",
        "probabilities of the mechanism, names it rightly; in brackets the proved cap on",
        "everybody.",
        f"Without an answer that is {1 / CANDIDATES:.3f}. Delta is 0.",
        f"Accuracies and names are {over(len(runs))}",
        "",
    ]
    for rule, found in means.items():
        lines.append(f"## R = {found['radius']:.3f} (l2), the distance to {rule} in the median")
        for epsilon, cells in found["by epsilon"].items():
            spreads = errors[rule]["by epsilon"][epsilon]
            lines += ["", *_table(cells, spreads, source, epsilon)]
        lines.append("")
    return "\n".join(lines)


def _table(cells: Results, spreads: Results, source: Source, epsilon: str) -> list[str]:
    """The lines of one table."""
    right = {"accuracy": f"{source.task} right"}
    if any("taught" in cell for cell in cells.values()):
        right["taught"] = f"{source.task} right, server of private answers"
    heads = [*right.values(), *(f"named, {count} answer(s) (cap)" for count in ANSWERS)]
    lines = [
        f"| epsilon {epsilon} | mechanism | {' | '.join(heads)} |",
        "|---|---|" + "---|" * len(heads),
    ]
    for name, cell in cells.items():
        spread = spreads[name]
        shown = [with_error(cell[key], spread[key]) if key in cell else "" for key in right]
        shown += [
            f"{with_error(named, error)} ({cap:.3f})"
            for named, error, cap in zip(cell["named"], spread["named"], cell["caps"], strict=True)
        ]
        lines.append(f"| {name} | {cell['released']} | {' | '.join(shown)} |")
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    parser = seeded_parser("papers.posthoc.linkage", __doc__, runs="linkage", data=tuple(SOURCES))
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    chosen = parser.parse_args(arguments)
    source = SOURCES[chosen.data]
    with bar() as report:
        inputs = source.load(folder_of(chosen), report)

    def measure(seed: int, folder: Path, report: Report) -> Results:
        return run(inputs, source, folder, epsilons=chosen.epsilon, seed=seed, report=report)

    runs = every_seed(chosen, measure)
    command = command_of(chosen, "papers.posthoc.linkage", epsilon=list(EPSILONS))
    leave(chosen, "linkage", runs, markdown(runs, source, command=command))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
