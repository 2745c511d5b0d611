"""What radii mean for the rows of the table: ``python -m papers.posthoc.radius_table``.

Counts of training rows within a radius of each other in the embedding, and the proved caps on
naming the right one of two of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from papers.datasets import load
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.settings import EPSILONS, SETTINGS, TableSettings, settings_of
from reticent.datasets import Dataset
from reticent.radius import RadiusSurvey, survey_radius
from reticent.training.progress import Report, bar

RADII = (0.1, 0.2, 0.5)


def run(
    data: Dataset,
    settings: TableSettings,
    folder: Path,
    *,
    radii: Sequence[float],
    epsilons: Sequence[float],
    seed: int,
    report: Report,
) -> RadiusSurvey:
    """What the radii mean for the training part.

    Args:
        data: the data set that ``settings`` were made for.
        settings: fixed settings.
        folder: where the embedder is kept, made if missing.
        radii, epsilons: that are looked at.
        seed: of training the embedder, and of random pairs.
        report: told about every finished training epoch.
    """
    folder.mkdir(parents=True, exist_ok=True)
    embedder = cached_embedder(data, settings, folder, seed=seed, report=report)
    points = embedder.embed(data.train_images).astype(np.float64)
    return survey_radius(
        points, radii=radii, epsilons=epsilons, columns={"label": data.train_labels}, seed=seed
    )


def markdown(found: RadiusSurvey, *, title: str) -> str:
    """A table of all radii."""
    epsilons = sorted({caps.epsilon for caps in found.caps})
    cap = {(caps.radius, caps.epsilon): caps.median_pair for caps in found.caps}
    heads = " | ".join(f"cap, median pair, epsilon {epsilon:g}" for epsilon in epsilons)
    lines = [
        f"# {title}",
        "",
        (
            "| R | rows with another within R | others within R, median | another label within R | "
            f"steps between random rows | {heads} |"
        ),
        "|---|---|---|---|---|" + "---|" * len(epsilons),
    ]
    for at in found.at:
        caps = " | ".join(f"{cap[at.radius, epsilon]:.3f}" for epsilon in epsilons)
        lines.append(
            f"| {at.radius:g} | {at.with_neighbour:,} of {found.rows:,} | "
            f"{at.median_neighbours:g} | {at.counterfactuals['label']:.1%} | {at.median_hops} | "
            f"{caps} |"
        )
    return "\n".join([*lines, "", *(f"{rule.name}: {rule.radius:.3g}" for rule in found.rules), ""])


def main() -> None:
    """Reads the arguments, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m papers.posthoc.radius_table", description=__doc__
    )
    parser.add_argument("--data", choices=sorted(SETTINGS), default="mnist")
    parser.add_argument("--folder", type=Path, default=None, help="where the embedder is kept")
    parser.add_argument("--radii", type=float, nargs="+", default=list(RADII))
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS[:2]))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with bar() as report:
        found = run(
            load(arguments.data),
            settings_of(arguments.data),
            arguments.folder or Path("results") / f"{arguments.data}-{arguments.seed}",
            radii=arguments.radii,
            epsilons=arguments.epsilons,
            seed=arguments.seed,
            report=report,
        )
    print(markdown(found, title=f"Radii: {arguments.data}, seed {arguments.seed}"))


if __name__ == "__main__":
    main()
