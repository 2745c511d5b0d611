"""Local Lipschitz constants against the adversary's weight and the radius, the paper's Figure 2:
``python -m papers.posthoc.constants_figure --data mnist``.

An obfuscator is trained with adversarial regularisation at every weight alpha, and its local
constant, l-infinity to l1, is bounded at training points for every radius. A smaller
constant alone says little: an obfuscator that shrinks its outputs has a smaller one and is worth no
more. So the constant also stands divided by the spread of what is released, the mean distance (l1)
of two released points: the noise that a release needs, as a share of what it hides.

Reference: Posthoc privacy guarantees for neural network queries, Figure 2 and section 5, E4.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from papers.datasets import load
from papers.drawings import empty_drawing, png
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.measurements import Embedded
from papers.posthoc.settings import TableSettings, settings_of
from papers.result_files import write_result
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
from reticent.core.norms import Norm
from reticent.datasets import Dataset
from reticent.published.obfuscators import PublishedObfuscator, Sign
from reticent.training.progress import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = dict[str, Any]

ALPHAS = (0.01, 0.5, 0.9, 0.99, 0.999)
RADII = (0.1, 0.2, 0.5, 1.0, 2.0)

_POINTS = 500
_ROWS = 20_000


def constants(
    points: Embedded, *, alpha: float, radii: Sequence[float], sign: Sign, report: Report
) -> Results:
    """Mean bounds on the local constant of one obfuscator, and its spread.

    Args:
        points: embeddings.
        alpha: weight of the adversary's term, in (0, 1).
        radii: of the neighbourhoods.
        sign: of that term: "minus" as in the paper's text, "plus" as in its authors' code.
        report: told about training.
    """
    settings = points.settings
    part = PublishedObfuscator(
        row="ARL",
        hidden=settings.published_hidden,
        outputs=settings.published_outputs,
        epochs=settings.published_epochs,
        batch_size=256,
        alpha=alpha,
        sign=sign,
        random_state=points.seed,
    ).fit(points.train[:_ROWS], points.train_labels[:_ROWS], report=report)
    network = points.network(part.network_)
    bound = points.bound(network, Norm.L1)
    asked = points.train[:_POINTS]
    released = network.forward(points.train[: 2 * _POINTS])
    return {
        "constants": {f"{radius:g}": float(bound.bound(asked, radius).mean()) for radius in radii},
        "spread": float(np.abs(released[:_POINTS] - released[_POINTS:]).sum(axis=1).mean()),
    }


def run(
    data: Dataset,
    settings: TableSettings,
    folder: Path,
    *,
    alphas: Sequence[float],
    radii: Sequence[float],
    sign: Sign = "minus",
    seed: int,
    report: Report,
) -> Results:
    """Constants of one seed at every weight; cells that stand in ``folder`` are read from there.

    Args:
        data: the data set that ``settings`` were made for.
        settings: of embedder and obfuscator.
        folder: of this seed; made if missing.
        alphas: weights of the adversary's term.
        radii: of the neighbourhoods; a cell holds those that it was made for.
        sign: of the adversary's term.
        seed: of training.
        report: told about training and every cell.
    """
    cell = Cells(folder / "constants-cells", "constants", len(alphas), report)

    @cache
    def points() -> Embedded:
        embedder = cached_embedder(data, settings, folder, seed=seed, report=report)
        return Embedded.of(data, embedder, settings, seed=seed)

    def measured(alpha: float) -> Results:
        return constants(points(), alpha=alpha, radii=radii, sign=sign, report=report)

    results: Results = {}
    for alpha in alphas:
        name = f"{alpha:g}-" + "-".join(f"{radius:g}" for radius in radii)
        name += "-plus" if sign == "plus" else ""
        found = cell(name, partial(measured, alpha))
        shares = {radius: value / found["spread"] for radius, value in found["constants"].items()}
        results[f"{alpha:g}"] = {**found, "shares": shares}
    return results


def markdown(data: str, runs: Sequence[Results], *, command: str) -> str:
    """Both readings as tables, with standard errors over seeds.

    Args:
        data: name of the data set.
        runs: what ``run`` gave for each seed.
        command: that prints it.
    """
    sign: Sign = "plus" if "--sign plus" in command else "minus"
    means, errors = combined(runs)
    radii = list(next(iter(means.values()))["constants"])
    head = f"| alpha | {' | '.join(f'R = {radius}' for radius in radii)} |"
    rule = "|---|" + "---|" * len(radii)
    lines = [
        f"# Local constants of adversarially trained obfuscators: {data}",
        "",
        f"Printed by `{command}`.",
        "Bounds on the local Lipschitz constant, l-infinity to l1, averaged over",
        f"{_POINTS} training points: {over(len(runs))}",
        f"The adversary's term has a {sign} sign.",
        "",
    ]
    for key, title in (
        ("constants", "The constant"),
        ("shares", "The constant over the spread of what is released"),
    ):
        lines += [f"## {title}", "", head, rule]
        for alpha, found in means.items():
            cells = [
                with_error(
                    found[key][radius], errors[alpha][key][radius], digits=2 + (key == "shares")
                )
                for radius in radii
            ]
            lines.append(f"| {alpha} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, f"![constants against alpha and R]({name_of(data, sign)}.png)", ""])


def name_of(data: str, sign: Sign) -> str:
    """The name of page, picture and numbers."""
    return f"posthoc-constants-{data}" + ("-plus" if sign == "plus" else "")


def figure(runs: Sequence[Results]) -> Figure:
    """Both readings as bars, one group for each weight and one bar for each radius."""
    means, errors = combined(runs)
    drawing = empty_drawing(10, 4.2)
    left, right = drawing.subplots(1, 2)
    alphas, radii = list(means), list(next(iter(means.values()))["constants"])
    width = 0.8 / len(radii)
    for axes, key, title in (
        (left, "constants", "local constant, mean bound"),
        (right, "shares", "the same over the spread of releases"),
    ):
        for index, radius in enumerate(radii):
            axes.bar(
                np.arange(len(alphas)) + (index - (len(radii) - 1) / 2) * width,
                [means[alpha][key][radius] for alpha in alphas],
                width,
                yerr=np.nan_to_num([errors[alpha][key][radius] for alpha in alphas]),
                color=str(0.85 - 0.7 * index / max(1, len(radii) - 1)),
                label=f"R = {radius}",
            )
        axes.set_xticks(range(len(alphas)), alphas)
        axes.set_xlabel("weight of the adversary's term, alpha")
        axes.set_title(title)
    left.legend(frameon=False)
    return drawing


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the page is."""
    parser = seeded_parser("papers.posthoc.constants_figure", __doc__, runs="constants")
    parser.add_argument("--alpha", type=float, nargs="+", default=list(ALPHAS))
    parser.add_argument("--radius", type=float, nargs="+", default=list(RADII))
    parser.add_argument(
        "--sign",
        choices=("minus", "plus"),
        default="minus",
        help="of the adversary's term (default: minus, as in the paper's text)",
    )
    chosen = parser.parse_args(arguments)
    data, settings = load(chosen.data), settings_of(chosen.data)

    def measure(seed: int, folder: Path, report: Report) -> Results:
        return run(
            data,
            settings,
            folder,
            alphas=chosen.alpha,
            radii=chosen.radius,
            sign=chosen.sign,
            seed=seed,
            report=report,
        )

    runs = every_seed(chosen, measure)
    write_result(
        folder_of(chosen) / f"{name_of(chosen.data, chosen.sign)}.png", png(figure(runs), dpi=130)
    )
    command = command_of(
        chosen,
        "papers.posthoc.constants_figure",
        alpha=list(ALPHAS),
        radius=list(RADII),
        sign="minus",
    )
    page = markdown(chosen.data, runs, command=command)
    leave(chosen, name_of(chosen.data, chosen.sign), runs, page)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
