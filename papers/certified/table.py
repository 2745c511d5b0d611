"""The paper's Table 1: ``python -m papers.certified.table``.

A teacher labels 100 public queries at a total of (10, 1e-5); a student learns from these labels
alone, and is scored on other held-out rows. Labels really are drawn, from seeds: these runs are
not private. Means over the seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from papers.certified.measurements import DP_SGD, TUNED, answers_of, argmax_sigma, private_training
from papers.certified.problems import Answers, Problem, problem_of
from papers.result_files import write_result
from reticent.accounting import epsilon_per_answer
from reticent.core.arrays import Integers
from reticent.core.guarantees import AddRemove
from reticent.mechanisms import NoisyArgmax, StabilityResponse
from reticent.noise import SeededSampler
from reticent.published.certified import GlobalSensitivityResponse, SmoothCauchy

Draw = Callable[[Answers, Integers, int], Integers]

TOTAL = {"epsilon": 10.0, "delta": 1e-5}
QUERIES = 100
MEMBERS = 25
TABLE_PROBLEMS = ("blobs", "pneumonia", "imdb")

PAPER: dict[str, dict[str, float]] = {
    "single model, global sensitivity": {"blobs": 82.8, "imdb": 54.4},
    "single model, smooth sensitivity": {"blobs": 99.8, "imdb": 73.5},
    "ensemble, global sensitivity": {"blobs": 99.5, "imdb": 73.0},
    "ensemble, smooth sensitivity": {"blobs": 98.1, "imdb": 71.7},
    "DP-SGD": {"blobs": 1.0, "imdb": 70.5},
}
"""Student accuracy in percent as printed; DP-SGD on blobs is printed as 1.0. The paper's third
column is OctMNIST, not here.
"""

ADJACENCY = AddRemove(1)
_EPSILON = epsilon_per_answer(**TOTAL, answers=QUERIES)


def _response(kind: type[SmoothCauchy] | type[GlobalSensitivityResponse]) -> Draw:
    def draw(answers: Answers, rows: Integers, seed: int) -> Integers:
        response = kind(epsilon=_EPSILON, adjacency=ADJACENCY)
        return response.release(
            answers.labels[rows], answers.distances[rows], sampler=SeededSampler(seed)
        )

    return draw


def _ours(answers: Answers, rows: Integers, seed: int) -> Integers:
    response = StabilityResponse(classes=answers.classes, epsilon=_EPSILON, adjacency=ADJACENCY)
    return response.release(
        answers.labels[rows], answers.distances[rows], sampler=SeededSampler(seed)
    )


def _noise_free(answers: Answers, rows: Integers, seed: int) -> Integers:
    return answers.labels[rows]


def _argmax(answers: Answers, rows: Integers, seed: int) -> Integers:
    sigma = argmax_sigma(queries=QUERIES, **TOTAL)
    assert sigma is not None
    counts = np.stack(
        [(answers.votes[:, rows] == label).sum(axis=0) for label in range(answers.classes)], axis=1
    )
    members = len(answers.votes)
    mechanism = NoisyArgmax(
        classes=answers.classes,
        neighbours=members,
        sigma=sigma,
        sampling_probability=1.0,
        delta=TOTAL["delta"],
    )
    return mechanism.release(counts, sampler=SeededSampler(seed))


TEACHERS: dict[str, tuple[int, Draw]] = {
    "single model, global sensitivity": (1, _response(GlobalSensitivityResponse)),
    "single model, smooth sensitivity": (1, _response(SmoothCauchy)),
    "single model, **ours**": (1, _ours),
    "ensemble, global sensitivity": (MEMBERS, _argmax),
    "ensemble, smooth sensitivity": (MEMBERS, _response(SmoothCauchy)),
    "ensemble, **ours**": (MEMBERS, _ours),
    "single model, noise-free labels (not private)": (1, _noise_free),
}
"""Members and mechanism by row. An ensemble's global sensitivity is PATE's noisy argmax,
Gaussian, with our accounting.
"""


def student_accuracy(problem: Problem, answers: Answers, draw: Draw, *, seed: int) -> float:
    """Accuracy of a logistic regression that saw 100 released labels, on all other held-out rows.

    Args:
        problem: data.
        answers: the teacher's, for all queries.
        draw: how labels are released.
        seed: of the choice of queries and of the mechanism.
    """
    order = np.random.default_rng([seed, 1]).permutation(len(problem.queries))
    asked, scored = order[:QUERIES], order[QUERIES:]
    released = draw(answers, asked, seed)
    if len(np.unique(released)) == 1:
        return float((problem.truth[scored] == released[0]).mean())
    student = LogisticRegression(C=1.0 / problem.X.shape[1], max_iter=1000).fit(
        problem.queries[asked], released
    )
    return float((student.predict(problem.queries[scored]) == problem.truth[scored]).mean())


def run(names: tuple[str, ...], folder: Path, *, seeds: int) -> dict[str, Any]:
    """All cells: mean and standard error of the student's accuracy over seeds, and DP-SGD's own.

    Args:
        names: problems with two labels.
        folder: cache of certificates, made if missing.
        seeds: students per cell.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, dict[str, Any]] = {name: {} for name in TEACHERS}
    trained: dict[str, dict[str, float]] = {DP_SGD: {}, TUNED: {}}
    noise_free: dict[str, float] = {}
    for name in names:
        problem = problem_of(name)
        for row, (members, draw) in TEACHERS.items():
            answers = answers_of(problem, members, folder)
            scores = [student_accuracy(problem, answers, draw, seed=seed) for seed in range(seeds)]
            rows[row][name] = {
                "mean": float(np.mean(scores)),
                "error": float(np.std(scores, ddof=1) / np.sqrt(seeds)),
            }
        noise_free[name] = answers_of(problem, 1, folder).noise_free
        for row, accuracy in private_training(problem, folder, **TOTAL, seeds=3).items():
            trained[row][name] = accuracy
    return {
        "students": rows,
        "private training": trained,
        "teacher without noise": noise_free,
        "paper": PAPER,
        "seeds": seeds,
    }


def markdown(results: dict[str, Any]) -> str:
    """The table as Markdown, with the paper's figures beside."""
    names = list(results["teacher without noise"])
    printed = [name for name in names if name in results["paper"]["DP-SGD"]]
    head = " | ".join([*names, *(f"paper: {name}" for name in printed)])
    lines = [
        "# Students of 100 released labels at a total of (10, 1e-5)",
        "",
        (
            f"Accuracy in percent on held-out rows, mean over {results['seeds']} seeds and its "
            "standard error. Labels are drawn "
            "from seeds, so these runs were not private. The paper's IMDB column is of other "
            "embeddings (GPT-2)."
        ),
        "",
        f"| teacher | {head} |",
        "|---" * (1 + len(names) + len(printed)) + "|",
    ]
    for row, cells in results["students"].items():
        found = [
            f"{100 * cells[name]['mean']:.1f} ± {100 * cells[name]['error']:.1f}" for name in names
        ]
        quoted = [
            f"{results['paper'][row][name]:.1f}" if row in results["paper"] else ""
            for name in printed
        ]
        lines.append(f"| {row} | {' | '.join([*found, *quoted])} |")
    for row, cells in results["private training"].items():
        quoted = [f"{results['paper']['DP-SGD'][name]:.1f}" for name in printed]
        lines.append(
            f"| {row} (no student) | "
            f"{' | '.join([*(f'{100 * cells[name]:.1f}' for name in names), *quoted])} |"
        )
    free = results["teacher without noise"]
    cells = [*(f"{100 * free[name]:.1f}" for name in names), *("" for _ in printed)]
    lines.append(f"| single teacher, noise-free (not private) | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, write the table, print where it is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=TABLE_PROBLEMS, nargs="+", default=list(TABLE_PROBLEMS))
    parser.add_argument("--out", type=Path, default=Path("runs/certified"))
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args(arguments)
    results = run(tuple(chosen.data), chosen.out / "cache", seeds=chosen.seeds)
    write_result(chosen.out / "table1.json", json.dumps(results, indent=1))
    write_result(chosen.out / "table1.md", markdown(results))
    print(chosen.out / "table1.md")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
