"""How much balanced accuracy costs, exactly: ``python -m papers.power.frontier``.

For a public score in a few bins, the most information, and the most accuracy, of any
(epsilon, 0)-private answer whose balanced accuracy is at most so much below that of randomised
response on the booster's side of the label shares. Every private channel can be had from one of
staircase columns by merging outputs (Kairouz, Oh and Viswanath 2014), and none of the three
criteria rises by merging; each is a sum over columns, so a linear program over all subsets of bins
finds the limit. Scores are those of public rows by models that did not learn from them; private and
held-out rows are not read. Beside the limits stands the code that "auto" releases, on the same
rows. Every cut is kept in the folder, so an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from papers.power.code_methods import Fitted
from papers.power.code_splits import DATA, split
from papers.result_files import write_result
from papers.seeds import combined
from reticent.core.arrays import Array
from reticent.systems.power.channels import best_staircase, randomised_response
from reticent.systems.power.query import PowerSetting
from reticent.systems.power.score_choice import FittedScores
from reticent.systems.power.score_fitting import best_score_code, both_sides
from reticent.systems.scores import Scores, channel_scores, joint_of

EPSILONS = (1.0, 2.0, 5.0)
MARGINS = (0.0, 0.0025, 0.005, 0.01)
KEPT = 0.006
"""Accuracy below the most accurate code's that the last limit allows."""
MOST_BINS = 12  # 4,094 columns

_SHOWN = ("accuracy", "balanced_accuracy", "auc", "information")
_HEADER = (
    "| table | epsilon | answer | accuracy | balanced | AUC | nats |\n|---|---|---|---|---|---|---|"
)

RESPONSE = "booster + randomised response at prevalence"
AUTO = '"auto"'


def limits(joint: Array, *, epsilon: float) -> dict[str, Scores]:
    """What the best private answers about the bins are worth, by what they are best at.

    Args:
        joint: probabilities of bin and label together, at most ``MOST_BINS`` bins.
        epsilon: above 0.
    """

    def best(scoring: str, floors: dict[str, float]) -> Scores:
        table = best_staircase(joint, epsilon=epsilon, scoring=scoring, floors=floors, every=True)
        return channel_scores(table.T @ joint)

    balanced = best("balanced_accuracy", {}).balanced_accuracy
    found = {}
    for scoring, name in (("information", "most nats"), ("accuracy", "most accuracy")):
        found[name] = best(scoring, {})
        for margin in MARGINS:
            floors = {"balanced_accuracy": balanced - margin}
            least = "as balanced" if margin == 0.0 else f"at most {margin:g} less balanced"
            found[f"{name}, {least}"] = best(scoring, floors)
    floors = {"accuracy": found["most accuracy"].accuracy - KEPT}
    found[f"most balanced, at most {KEPT:g} less accurate"] = best("balanced_accuracy", floors)
    return found


def cut_limits(
    data: str, *, seed: int, tuning: bool, bins: int, folder: Path
) -> dict[str, dict[str, dict[str, float]]]:
    """Epsilon to answer to scores, of one cut; read from ``folder`` where it stands."""
    path = folder / f"{data}-{bins}-{seed}{'-tuning' if tuning else ''}.json"
    if not path.is_file():
        fit = Fitted(split(data, seed=seed, tuning=tuning))
        models, labels = fit.models[0], fit.part.public[1]
        [boosted] = (fitted for fitted in models if fitted.model.kind == "boosted")
        scores = boosted.scores
        cut, side = (both_sides_of(scores, labels, bins=count) for count in (bins, 2))
        found = {}
        for epsilon in EPSILONS:
            found[f"{epsilon:g}"] = {
                RESPONSE: channel_scores(randomised_response(2, epsilon=epsilon).T @ side),
                AUTO: released(fit, models, epsilon),
                **limits(cut, epsilon=epsilon),
            }
        write_result(
            path,
            json.dumps({e: {n: asdict(s) for n, s in part.items()} for e, part in found.items()}),
        )
        print(data, seed, flush=True)
    kept: dict[str, dict[str, dict[str, float]]] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def both_sides_of(scores: np.ndarray, labels: np.ndarray, *, bins: int) -> Array:
    """Shares of rows in each bin with each label; as many bins on either side of the label shares.

    Args:
        scores: shape (n, 1), log odds of the second label.
        labels: shape (n,), 0 or 1.
        bins: an even number.
    """
    [cut] = both_sides(scores, labels, size=bins // 2)
    return joint_of(cut.of(scores), labels, bins=cut.count)


def released(fit: Fitted, models: list[FittedScores], epsilon: float) -> Scores:
    """What the code that "auto" releases is worth on the public rows, by models that did not learn
    from them.
    """
    labels = fit.part.public[1]
    required = PowerSetting(
        mechanism="k-norm-l2", epsilon=epsilon, delta=0.0, radius=None, scoring="information"
    )
    query, _ = best_score_code(fit.part.schema, required, models, labels)
    [chosen] = (fitted for fitted in models if fitted.model.kind == query.model.kind)
    joint = joint_of(query.bins.of(chosen.scores), labels, bins=query.bins.count)
    return channel_scores(query.mechanism.matrix.T @ joint)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=DATA, nargs="+", default=["adult", "pullovers"])
    parser.add_argument("--seeds", type=int, default=3, help="how many cuts are averaged")
    parser.add_argument("--bins", type=int, default=10, help=f"an even number up to {MOST_BINS}")
    parser.add_argument("--tuning", action="store_true", help="public rows of the tuning cut")
    parser.add_argument("--folder", type=Path, default=Path("runs") / "power-frontier")
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error(f"--seeds: expected at least 1, got {chosen.seeds}")
    if chosen.bins % 2 or not 2 <= chosen.bins <= MOST_BINS:
        parser.error(f"--bins: expected an even number from 2 to {MOST_BINS}, got {chosen.bins}")
    lines = [_HEADER]
    for data in chosen.data:
        cuts = [
            cut_limits(
                data, seed=seed, tuning=chosen.tuning, bins=chosen.bins, folder=chosen.folder
            )
            for seed in range(chosen.seeds)
        ]
        for epsilon in cuts[0]:
            for name in cuts[0][epsilon]:
                means, errors = combined([cut[epsilon][name] for cut in cuts])
                cells = [f"{means[score]:.4f} ± {errors[score]:.4f}" for score in _SHOWN]
                lines.append(f"| {data} | {epsilon} | {name} | {' | '.join(cells)} |")
    text = "\n".join(lines)
    write_result(chosen.folder / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
