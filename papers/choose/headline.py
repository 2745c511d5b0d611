"""Released classifiers on patch features, at one total: ``python -m papers.choose.headline --data
mnist``.

Every row's settings are chosen on *another* data set: those for MNIST and CIFAR-10 on
Fashion-MNIST, those for Fashion-MNIST on MNIST, by accuracy on that data set's public pictures at
the same total and about as many private records. They are then used as they are, with three noise
seeds. Nothing of the scored data set but its public pictures, without labels, has a say in a map,
a scale, a cell or a student. Every trial and every row is kept in the folder, so that an
interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.choose.features import DATA, Parts, parts_of
from papers.result_files import write_result
from papers.seeds import combined
from reticent.systems.features import Features
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.released_model import ReleasedModel
from reticent.training.progress import Report, bar, silent

Array = npt.NDArray[np.float64]
Settings = dict[str, Any]

DELTA = 1e-5
SEEDS = (1, 2, 3)
SELECTION_SEEDS = (101,)


@dataclass(frozen=True)
class Task:
    """What is scored, and where its settings come from.

    Attributes:
        totals: epsilons.
        chosen_on: another data set.
        records: private records there; None for all.
        transductive: whether the public pictures are nine tenths of those that are scored.
    """

    totals: tuple[float, ...]
    chosen_on: str
    records: int | None
    transductive: bool


TASKS = {
    "mnist": Task((0.1, 0.5), "fashion", None, transductive=False),
    "fashion": Task((1.0,), "mnist", None, transductive=False),
    "cifar10": Task((2.0,), "fashion", 10_000, transductive=True),
}

SHARES = (None, 0.7, 0.8, 0.9, 1.0)
"""Students that every candidate is tried with: none, or taught the surest labels of so many."""

ROWS: dict[str, tuple[type[ReleasedModel], list[Settings]]] = {
    "noisy gradient descent": (
        NoisyGradientClassifier,
        [
            {"components": kept, "whitening": power, "steps": steps, "learning_rate": rate}
            for kept in (100, 200, 400)
            for power in (0.5, 0.75)
            for steps, rate in ((15, 20.0), (40, 20.0), (80, 40.0))
        ],
    ),
}
"""Candidates of every row."""


class AsTheyAre:
    """The features of ``Parts``, which are a public map's already."""

    name = "400 principal components of patch features of public pictures"

    def features(self, inputs: npt.ArrayLike) -> Array:
        """``inputs``."""
        return np.asarray(inputs, dtype=np.float64)


def in_parts(settings: Settings) -> dict[str, Any]:
    """Return settings as an estimator of votes takes them: those of features in a part."""
    rest = dict(settings)
    shaping = {name: rest.pop(name) for name in ("components", "whitening") if name in rest}
    return {**rest, "features": Features(**shaping)}


def fitted(
    row: str, settings: Settings, parts: Parts, *, epsilon: float, seeds: Sequence[int]
) -> Iterator[ReleasedModel]:
    """The models of one row, with noise from each seed; the number of records counts as public."""
    kind = ROWS[row][0]
    given = in_parts(settings)
    if kind is NoisyGradientClassifier:
        given["records"] = len(parts.private)
    model = kind(
        epsilon=epsilon,
        delta=DELTA,
        classes=range(10),
        **{**given, "features": replace(given["features"], map=AsTheyAre())},
    )
    return model.simulate_fits(
        parts.private,
        parts.private_y,
        public_X=parts.public,
        totals=[(epsilon, DELTA)],
        seeds=seeds,
    )


def choose(
    row: str, parts: Parts, *, epsilon: float, trials: Path, report: Report = silent
) -> Settings:
    """The candidate, with or without student, that labels the public pictures of ``parts`` best.

    Args:
        row: one of ``ROWS``.
        parts: of the data set that settings are chosen on.
        epsilon: of the total.
        trials: a JSON file in which every trial is kept; for these parts only.
        report: told after each candidate.
    """
    found: dict[str, dict[str, float]] = json.loads(trials.read_text()) if trials.is_file() else {}
    best, chosen = -1.0, {}
    candidates = ROWS[row][1]
    for place, candidate in enumerate(candidates):
        name = f"{row}, epsilon {epsilon:g}, {json.dumps(candidate)}"
        if name not in found:
            found[name] = _tried(row, candidate, parts, epsilon)
            write_result(trials, json.dumps(found, indent=1) + "\n")
        for share in SHARES:
            if found[name][str(share)] > best:
                best, chosen = found[name][str(share)], {**candidate, "student_share": share}
        report(f"{row}, epsilon {epsilon:g}", place + 1, len(candidates), best)
    return chosen


def _tried(row: str, candidate: Settings, parts: Parts, epsilon: float) -> dict[str, float]:
    """Accuracy on the public pictures by share of the student, over the selection seeds."""
    right: dict[str, list[float]] = {str(share): [] for share in SHARES}
    for model in fitted(row, candidate, parts, epsilon=epsilon, seeds=SELECTION_SEEDS):
        for share in SHARES:
            taught = model.with_student(parts.public, share)
            right[str(share)].append(_accuracy(taught, parts.public, parts.public_y))
    return {share: float(np.mean(values)) for share, values in right.items()}


def task_of(data: str, *, transductive: bool) -> Task:
    """The task of ``data``, with public pictures from those that are scored if so asked."""
    return replace(TASKS[data], transductive=transductive or TASKS[data].transductive)


def option_of(data: str, *, transductive: bool) -> str:
    """What tells its results from those of the task as it is listed."""
    return "-transductive" if transductive and not TASKS[data].transductive else ""


def run(
    data: str, names: list[str], *, transductive: bool, folder: Path, report: Report = silent
) -> dict[str, Any]:
    """The rows called ``names`` and those in ``folder``, where each is kept once it is computed."""
    task = task_of(data, transductive=transductive)
    path = folder / f"headline-{data}{option_of(data, transductive=transductive)}.json"
    rows: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    for epsilon in task.totals:
        for row in names:
            name = f"{row} at {epsilon:g}"
            if name not in rows:
                rows[name] = _row(row, data, task, epsilon, folder, report)
                write_result(path, json.dumps(rows, indent=2, allow_nan=False) + "\n")
    return rows


def table(data: str, rows: dict[str, Any], *, transductive: bool) -> str:
    """The results as Markdown."""
    task = task_of(data, transductive=transductive)
    option = option_of(data, transductive=transductive).replace("-", " --")
    public = (
        "the first nine tenths of the held-out pictures, without labels: *transductive* but for "
        "the last tenth, which is scored by itself as well"
        if task.transductive
        else "the last 10,000 training pictures, without labels; private records are the first "
        "50,000; the held-out pictures are seen by nothing"
    )
    lines = [
        f"# Released classifiers on {data}",
        "",
        (
            f"`python -m papers.choose.headline --data {data}{option}`; delta = {DELTA:g}, one "
            "record more or less."
        ),
        "",
        (
            f"Public are {public}. Settings were chosen on {task.chosen_on}. Accuracy on all "
            f"10,000 held-out pictures, mean of {len(SEEDS)} noise seeds with its standard error "
            f"(of the noise alone; sampling of 10,000 test pictures adds about "
            f"{_sampling(rows):.2%})."
        ),
        "",
        "| epsilon | row | accuracy | without student | unseen pictures | settings |",
        "|---|---|---|---|---|---|",
    ]
    for found in sorted(rows.values(), key=lambda row: (row["epsilon"], row["row"])):
        means, errors = combined(found["runs"])
        cells = [f"{means[key]:.2%} ({errors[key]:.2%})" for key in ("accuracy", "alone", "unseen")]
        settings = ", ".join(f"{name} {value}" for name, value in found["settings"].items())
        lines.append(
            f"| {found['epsilon']:g} | {found['row']} | {' | '.join(cells)} | {settings} |"
        )
    return "\n".join(lines) + "\n"


def _row(
    row: str, data: str, task: Task, epsilon: float, folder: Path, report: Report
) -> dict[str, Any]:
    elsewhere = parts_of(task.chosen_on, transductive=False, folder=folder, report=report)
    if task.records is not None:
        elsewhere = replace(
            elsewhere,
            private=elsewhere.private[: task.records],
            private_y=elsewhere.private_y[: task.records],
        )
    trials = folder / f"trials-{task.chosen_on}-{len(elsewhere.private)}.json"
    settings = choose(row, elsewhere, epsilon=epsilon, trials=trials, report=report)
    parts = parts_of(data, transductive=task.transductive, folder=folder, report=report)
    runs = []
    for model in fitted(row, settings, parts, epsilon=epsilon, seeds=SEEDS):
        right = model.predict(parts.test) == parts.test_y
        alone = model.with_student(parts.public, None)
        runs.append(
            {
                "accuracy": float(right.mean()),
                "alone": _accuracy(alone, parts.test, parts.test_y),
                "unseen": float(right[parts.unseen :].mean()),
            }
        )
    return {"row": row, "epsilon": epsilon, "settings": settings, "runs": runs}


def _accuracy(model: ReleasedModel, rows: Array, truth: npt.NDArray[np.int64]) -> float:
    return float((model.predict(rows) == truth).mean())


def _sampling(rows: dict[str, Any]) -> float:
    best = max(run["accuracy"] for found in rows.values() for run in found["runs"])
    return float(np.sqrt(best * (1 - best) / 10_000))


def main() -> None:
    """Runs the rows and writes the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", choices=DATA, default="mnist")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument(
        "--transductive", action="store_true", help="public pictures are nine tenths of the scored"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/choose"))
    arguments = parser.parse_args()
    with bar() as report:
        rows = run(
            arguments.data,
            arguments.rows,
            transductive=arguments.transductive,
            folder=arguments.out,
            report=report,
        )
    text = table(arguments.data, rows, transductive=arguments.transductive)
    option = option_of(arguments.data, transductive=arguments.transductive)
    write_result(arguments.out / f"headline-{arguments.data}{option}.md", text)
    print(text)


if __name__ == "__main__":
    main()
