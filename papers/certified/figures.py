"""The figures of certified private prediction: ``python -m papers.certified.figures --figure 5
--data blobs``.

Figures carry the paper's numbers. In all of them the three mechanisms read the same certificates
of the same model, every distance is certified (so the published mechanism is private here), and
accuracies are exact expectations over the mechanisms' randomness: nothing is drawn. Certificates
are cached in the folder, so an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from papers.certified.chart import Chart, figure_of
from papers.certified.measurements import (
    ARGMAX,
    DP_SGD,
    TUNED,
    answers_of,
    argmax_sigma,
    gaussian_argmax,
    noisy_argmax,
    private_training,
    queries_until,
    system_of,
)
from papers.certified.problems import OURS, PROBLEMS, PUBLISHED, PURE, Answers, Problem, problem_of
from papers.drawings import empty_drawing, png
from papers.result_files import write_result
from reticent.accounting import epsilon_per_answer
from reticent.datasets import load_blobs
from reticent.systems import CertifiedClassifier

TOTAL = {"epsilon": 10.0, "delta": 1e-5}
"""Total budget of Figure 5 and Table 1, the paper's."""

MEMBERS = 25
"""Members of the ensemble in Figure 5, the paper's."""

_EPSILONS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_SIZES = (1, 5, 10, 25, 50)
_QUERIES = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
_LEVELS = (1, 2, 3, 5, 10, 20, 50, 100)
_MOST_QUERIES = 10**6
_SEEDS = 3
_HEAT_WIDTH, _HEAT_K = 128, 100


def accuracy_against_epsilon(problem: Problem, folder: Path) -> list[Chart]:
    """Figure 2: one model, accuracy of one answer at a pure epsilon."""
    answers = answers_of(problem, 1, folder)
    names = list(PURE) if problem.classes == 2 else [OURS]
    series = {
        name: [(epsilon, PURE[name](answers, epsilon)) for epsilon in _EPSILONS] for name in names
    }
    return [
        Chart(
            f"Accuracy against epsilon: {problem.name}",
            "epsilon of one answer",
            "accuracy",
            series,
            {"noise-free": answers.noise_free},
            y_range=(0.4, 1.02) if problem.classes == 2 else (0.0, 1.02),
            notes=(problem.about,),
        )
    ]


def accuracy_against_size(problem: Problem, folder: Path) -> list[Chart]:
    """Figure 4: accuracy against the number of members, at epsilon 1 and 0.1 per answer."""
    charts = []
    for epsilon in (1.0, 0.1):
        series: dict[str, list[tuple[float, float]]] = {
            OURS: [],
            PUBLISHED: [],
            ARGMAX: [],
            "noise-free": [],
        }
        for size in _SIZES:
            answers = answers_of(problem, size, folder)
            for name in (OURS, PUBLISHED):
                series[name].append((size, PURE[name](answers, epsilon)))
            series[ARGMAX].append((size, noisy_argmax(answers, epsilon)))
            series["noise-free"].append((size, answers.noise_free))
        title = f"Accuracy against ensemble size, epsilon {epsilon:g}: {problem.name}"
        note = (
            "The published mechanism reads our distances of the vote; the paper's own sum over all "
            "members is not private."
        )
        charts.append(
            Chart(title, "members", "accuracy", series, log_x=False, notes=(problem.about, note))
        )
    return charts


def accuracy_against_queries(problem: Problem, folder: Path) -> list[Chart]:
    """Figure 5: accuracy against the number of queries at a total of (10, 1e-5), beside DP-SGD,
    and how many ours wins.
    """
    trained = private_training(problem, folder, **TOTAL, seeds=_SEEDS)
    single, ensemble = answers_of(problem, 1, folder), answers_of(problem, MEMBERS, folder)
    spent = {queries: epsilon_per_answer(**TOTAL, answers=queries) for queries in _QUERIES}
    series: dict[str, list[tuple[float, float]]] = {}
    for name in PURE:
        series[name] = [
            (queries, PURE[name](single, epsilon)) for queries, epsilon in spent.items()
        ]
    for name in (OURS, PUBLISHED):
        series[f"{name}, {MEMBERS} members"] = [
            (queries, PURE[name](ensemble, epsilon)) for queries, epsilon in spent.items()
        ]
    sigmas = [(queries, argmax_sigma(queries=queries, **TOTAL)) for queries in _QUERIES]
    series[ARGMAX] = [
        (queries, gaussian_argmax(ensemble, sigma))
        for queries, sigma in sigmas
        if sigma is not None
    ]
    charts = [
        Chart(
            f"Accuracy against queries at a total of (10, 1e-5): {problem.name}",
            "number of queries",
            "accuracy",
            series,
            {**trained, "noise-free": single.noise_free},
            notes=(problem.about, *_query_counts(single, ensemble, trained)),
        )
    ]
    return charts


def _query_counts(single: Answers, ensemble: Answers, trained: dict[str, float]) -> list[str]:
    """How many queries stay above a floor, in words: a Markdown table as one paragraph."""
    rows = [
        "| queries answered before accuracy falls below | ours | published | ratio |",
        "|---|---|---|---|",
    ]
    for kind, answers in (("one model", single), (f"{MEMBERS} members", ensemble)):
        floors = {f"{name} ({trained[name]:.4f})": trained[name] for name in (DP_SGD, TUNED)}
        floors[f"noise-free less one point ({answers.noise_free - 0.01:.4f})"] = (
            answers.noise_free - 0.01
        )
        for name, floor in floors.items():
            counts = [_until(PURE[mechanism], answers, floor) for mechanism in (OURS, PUBLISHED)]
            ratio = (
                f"{counts[0] / counts[1]:.1f}"
                if counts[1]
                else ("none of either" if not counts[0] else "published: none")
            )
            rows.append(f"| {kind}: {name} | {_most(counts[0])} | {_most(counts[1])} | {ratio} |")
    return ["\n".join(rows)]


def _until(mechanism: Callable[[Answers, float], float], answers: Answers, floor: float) -> int:
    return queries_until(
        lambda epsilon: mechanism(answers, epsilon), floor, **TOTAL, most=_MOST_QUERIES
    )


def _most(queries: int) -> str:
    return f"{queries:,}" if queries < _MOST_QUERIES else f"{queries:,} or more"


def effect_of_levels(problem: Problem, folder: Path) -> list[Chart]:
    """Figure 6: the mean published bound exp(-epsilon k / 6) on the smooth sensitivity, with
    fewer certified distances.
    """
    distances = answers_of(problem, 1, folder).distances
    series: dict[str, list[tuple[float, float]]] = {
        "published: credited by distance, not private": [],
        "published: credited by place in the set": [],
        "ours: chance of a wrong label, by place": [],
    }
    for size in _LEVELS:
        # Denser towards small distances, as the paper advises.
        chosen = np.unique(np.geomspace(1, problem.k_max, size + 2)[1:-1].round().astype(int))
        place = np.searchsorted(chosen, distances, side="right")
        credited = np.concatenate([[0], chosen])[place]
        found = (
            np.exp(-credited / 6).mean(),
            np.exp(-place / 6).mean(),
            (np.exp(-1.0 * place) / (1 + math.e)).mean(),
        )
        for name, value in zip(series, found, strict=True):
            series[name].append((len(chosen), float(value)))
    full, wrong = float(np.exp(-distances / 6).mean()), np.exp(-1.0 * distances) / (1 + math.e)
    note = (
        "epsilon 1. With a sparse set of distances the published credit can jump between "
        "neighbours, so its figures are not of a "
        "private mechanism; what is private is the place in the set, and the full set."
    )
    return [
        Chart(
            f"Effect of the number of certified distances: {problem.name}",
            "distances in the set",
            "mean bound",
            series,
            y_range=None,
            levels={
                "published: every distance": full,
                "ours: every distance": float(wrong.mean()),
            },
            notes=(problem.about, note),
        )
    ]


def certified_fraction(problem: Problem, folder: Path) -> list[Chart]:
    """Figure 8: share of queries whose label survives k changed records, for one model and the
    ensemble.
    """
    places = [
        k
        for k in (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300)
        if k <= problem.k_max
    ]
    single, ensemble = answers_of(problem, 1, folder), answers_of(problem, MEMBERS, folder)
    series = {
        "ours: one model": [(float(k), float((single.distances >= k).mean())) for k in places],
        f"PATE: votes alone, {MEMBERS} members": [
            (float(k), float((_vote_margin(ensemble) >= k).mean())) for k in places
        ],
        f"ours: {MEMBERS} members": [
            (float(k), float((ensemble.distances >= k).mean())) for k in places
        ],
    }
    levels = {
        "noise-free accuracy, one model": single.noise_free,
        "noise-free accuracy, ensemble": ensemble.noise_free,
    }
    title = f"Certified fraction against k: {problem.name}"
    return [
        Chart(
            title,
            "changed records k",
            "share of queries",
            series,
            levels,
            log_x=False,
            y_range=(0.0, 1.02),
            notes=(problem.about,),
        )
    ]


def _vote_margin(answers: Answers) -> np.ndarray:
    """Changed records that a vote survives when every changed record may flip its member."""
    counts = np.sort(
        [(answers.votes == label).sum(axis=0) for label in range(answers.classes)], axis=0
    )
    return np.asarray(np.maximum(0, (counts[-1] - counts[-2] - 1) // 2))


def predictions_survive(problem: Problem, folder: Path) -> list[Chart]:
    """Views without noise: share of queries whose label survives k removed, inserted or exchanged
    records. Deterministic, for the owner; not a release.
    """
    system = system_of(problem)
    assert isinstance(system, CertifiedClassifier)
    system.fit(problem.X, problem.y)
    kinds = {
        "removed (unlearning)": system.unlearning(problem.queries),
        "inserted (poisoning)": system.poisoning(problem.queries),
        "exchanged (poisoning)": system.poisoning(problem.queries, change="replace"),
    }
    places = [k for k in (0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 600) if k <= system.k_max]
    return [
        Chart(
            f"Labels that survive k changed records, by retraining: {problem.name}",
            "records k",
            "share of queries",
            {
                f"ours: {kind}": [(float(k), float((numbers >= k).mean())) for k in places]
                for kind, numbers in kinds.items()
            },
            y_range=(0.0, 1.02),
            notes=(
                problem.about,
                "Deterministic statements about one fitted model, for the owner of the records.",
            ),
        )
    ]


_FIGURES: dict[str, Callable[[Problem, Path], list[Chart]]] = {
    "2": accuracy_against_epsilon,
    "4": accuracy_against_size,
    "5": accuracy_against_queries,
    "6": effect_of_levels,
    "8": certified_fraction,
    "survive": predictions_survive,
}


def heat_map(kind: str) -> tuple[bytes, dict[str, object]]:
    """Figure 3: chance of a wrong label over the plane at epsilon 1, the published bound and ours,
    with the paper's network.

    Args:
        kind: of blobs.

    Returns:
        A PNG, and the numbers.
    """
    data = load_blobs(kind)
    base = problem_of("blobs")
    problem = replace(
        base,
        X=data.train_rows,
        y=data.train_labels,
        k_max=_HEAT_K,
        training={**base.training, "hidden": (_HEAT_WIDTH,)},
    )
    system = system_of(problem).fit(problem.X, problem.y)
    ticks = np.linspace(-5, 5, 81)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    labels, distances = (part.reshape(81, 81) for part in system.stable_distances(grid))
    drawing = empty_drawing(11, 4.8)
    panels = {
        "published: smooth sensitivity bound, epsilon 1": np.exp(-distances / 6.0),
        "ours: chance of a wrong label, epsilon 1": np.exp(-1.0 * distances) / (1 + math.e),
    }
    for axes, (name, values) in zip(drawing.subplots(1, 2), panels.items(), strict=True):
        image = axes.pcolormesh(ticks, ticks, np.log10(values), cmap="viridis", vmin=-8, vmax=0)
        axes.contour(ticks, ticks, labels, levels=[0.5], colors="#d62728")
        some = slice(0, 400)
        axes.scatter(
            *data.train_rows[some].T, c=data.train_labels[some], cmap="coolwarm", s=3, alpha=0.5
        )
        axes.set_title(f"{name}, {kind} blobs", loc="left", fontsize=10)
        axes.set(aspect="equal", xlim=(-5, 5), ylim=(-5, 5))
    drawing.colorbar(image, ax=drawing.axes, label="log10")
    summary = {
        name: [float(value) for value in np.quantile(values, (0.1, 0.5, 0.9))]
        for name, values in panels.items()
    }
    return png(drawing, dpi=130), {
        "kind": kind,
        "k_max": _HEAT_K,
        "quantiles 0.1, 0.5, 0.9": summary,
        "distances": distances.tolist(),
    }


def run(figure: str, data: str, folder: Path) -> Path:
    """One figure for one problem: JSON, Markdown and PNG in ``folder``; the path of the
    Markdown.
    """
    cache = folder / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    name = f"figure{figure}-{data}"
    if figure == "3":
        kind = {"blobs": "separable", "blobs-close": "close"}[data]
        picture, numbers = heat_map(kind)
        text = (
            f"## Heat map of the bound: {kind} blobs, a hidden layer of 128 units, k up to 100\n\n"
            f"![heat map]({name}.png)\n"
        )
        content = json.dumps(numbers)
    else:
        charts = _FIGURES[figure](problem_of(data), cache)
        picture, content = (
            figure_of(charts),
            json.dumps([chart.to_dict() for chart in charts], indent=1),
        )
        text = (
            "\n".join(chart.markdown() for chart in charts) + f"\n![figure {figure}]({name}.png)\n"
        )
    write_result(folder / f"{name}.json", content)
    write_result(folder / f"{name}.md", text)
    write_result(folder / f"{name}.png", picture)
    return folder / f"{name}.md"


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, write one figure, print where it is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--figure", choices=("2", "3", "4", "5", "6", "8", "survive"), required=True
    )
    parser.add_argument(
        "--data", choices=PROBLEMS, default="blobs", help="Figure 3 is of blobs and blobs-close."
    )
    parser.add_argument("--out", type=Path, default=Path("runs/certified"))
    chosen = parser.parse_args(arguments)
    if chosen.figure == "3" and not chosen.data.startswith("blobs"):
        parser.error("--figure 3 draws a plane: expected --data blobs or blobs-close")
    if chosen.figure in ("4", "5", "6") and chosen.data == "digits":
        parser.error(
            "--figure 4, 5 and 6 compare with mechanisms for two labels: expected another "
            "--data than digits"
        )
    print(run(chosen.figure, chosen.data, chosen.out))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
