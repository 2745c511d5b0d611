"""Codes beside their rungs, any two records: ``python -m papers.power.codes``.

Each method is fitted on public rows; a server that knows the channel learns from released private
rows, and is scored on released held-out ones. Noise of the latter is summed over exactly, and that
of the former averaged over several draws: with a hundred held-out rows one draw of both moves the
accuracy by 4 %, more than the methods differ. Differences from the booster's nats are paired by
cut. With ``--tuning`` a fifth of the training rows is held out, and the test rows are not read.
Every cut is kept in the folder, so an interrupted run continues.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from papers.power.code_methods import AUTO, RUNG, RUNGS, Fitted, Results, all_methods
from papers.power.code_splits import DATA, split
from papers.result_files import cached_result, write_result
from papers.seeds import combined

EPSILONS = (1.0, 2.0, 5.0)
SCORES = ("accuracy", "balanced_accuracy", "auc", "information")

_HEADER = (
    "| table | epsilon | method | accuracy | balanced | AUC | nats | nats above the booster at "
    "prevalence | fit, s | chosen |\n|---|---|---|---|---|---|---|---|---|---|"
)

_COMPARED = (
    "| table | epsilon | rung nearest to, or ahead of, the code | nats of the code above it | "
    "balanced accuracy above the booster at prevalence | AUC above it | times its fit |\n"
    "|---|---|---|---|---|---|---|"
)


def cut_results(data: str, *, seed: int, tuning: bool, folder: Path) -> dict[str, Results]:
    """Results of one cut, epsilon to method to scores; read from ``folder`` where they stand."""

    def compute() -> dict[str, Results]:
        fit = Fitted(split(data, seed=seed, tuning=tuning))
        return {f"{epsilon:g}": all_methods(fit, epsilon) for epsilon in EPSILONS}

    return cached_result(folder / f"{data}-{seed}{'-tuning' if tuning else ''}.json", compute)


def table(data: str, cuts: list[dict[str, Results]]) -> list[str]:
    """Rows of markdown, one for each epsilon and method."""
    return [
        f"| {data} | {epsilon} | {name} | {_cells([cut[epsilon] for cut in cuts], name)} |"
        for epsilon in cuts[0]
        for name in cuts[0][epsilon]
    ]


def verdicts(data: str, cuts: list[dict[str, Results]]) -> list[str]:
    """For each epsilon, the rung that is farthest ahead of the code by information; how much
    balanced accuracy and AUC the code has above the booster's, paired; and how many times the
    booster's fit its own takes.
    """
    lines = []
    for epsilon in cuts[0]:
        found = [cut[epsilon] for cut in cuts]
        gains = {name: _gain(found, name, "information") for name in RUNGS}
        name = min(gains, key=lambda name: gains[name][0])
        above = " | ".join(
            f"{gain:+.4f} ± {error:.4f}"
            for gain, error in (
                gains[name],
                _gain(found, RUNG, "balanced_accuracy"),
                _gain(found, RUNG, "auc"),
            )
        )
        times = np.mean([cut[AUTO]["seconds"] / cut[RUNG]["seconds"] for cut in found])
        lines.append(f"| {data} | {epsilon} | {name} | {above} | {times:.1f} |")
    return lines


def _gain(cuts: list[Results], name: str, score: str) -> tuple[float, float]:
    """Mean and standard error of what the code has above the method called ``name``."""
    means, errors = combined([{"gain": cut[AUTO][score] - cut[name][score]} for cut in cuts])
    return means["gain"], errors["gain"]


def _cells(cuts: list[Results], name: str) -> str:
    """Means and standard errors over cuts; those of differences are of pairs."""
    runs = [
        {**cut[name], "gain": cut[name]["information"] - cut[RUNG]["information"]} for cut in cuts
    ]
    means, errors = combined(runs)
    numbers = [f"{means[score]:.4f} ± {errors[score]:.4f}" for score in (*SCORES, "gain")]
    seconds = f"{means['seconds']:.1f}" if means["seconds"] else ""
    return " | ".join([*numbers, seconds, means["chosen"]])


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=DATA, nargs="+", default=list(DATA))
    parser.add_argument("--seeds", type=int, default=3, help="how many cuts are averaged")
    parser.add_argument("--tuning", action="store_true", help="leave the test rows alone")
    parser.add_argument("--folder", type=Path, default=Path("runs") / "power-codes")
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error("--seeds: expected at least 1")
    rows, compared = [], []
    for data in chosen.data:
        cuts = [
            cut_results(data, seed=seed, tuning=chosen.tuning, folder=chosen.folder)
            for seed in range(chosen.seeds)
        ]
        rows += table(data, cuts)
        compared += verdicts(data, cuts)
        print(data, flush=True)
    text = "\n".join([_HEADER, *rows, "", _COMPARED, *compared])
    write_result(chosen.folder / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
