"""The demonstration as one picture file: accuracy, reconstructions and neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.demos.posthoc.accuracy_lines import accuracy_levels, accuracy_series
from reticent.demos.posthoc.demo import DemoOutcome, inked
from reticent.demos.posthoc.gaps import UNPROTECTED
from reticent.plots import empty_drawing, png, utility

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

_SHOWN = 5


def figure(outcome: DemoOutcome) -> bytes:
    """PNG of three panels: accuracy against the proved total, what an attacker draws, and
    neighbours at R.
    """
    drawing = empty_drawing(13, 5.2)
    left, middle, right = np.asarray(
        drawing.subfigures(1, 3, width_ratios=(1.1, 0.72, 0.68), wspace=0.02), dtype=object
    )
    _accuracy(left.subplots(), outcome.results)
    _attack(middle, outcome)
    _neighbours(right, outcome)
    return png(drawing, dpi=160)


def _accuracy(axes: Axes, results: dict[str, Any]) -> None:
    settings = results["settings"]
    utility(
        axes,
        accuracy_series(results),
        accuracy_levels(results),
        x_name=f"proved total ε per picture (δ ≤ {settings['delta']:g}, R = "
        f"{settings['radius']:g})",
        y_name="held-out accuracy of the server's model",
        y_range=(0.0, 1.0),
        title="The same proof, different training",
        legend=False,
    )
    axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)


def _attack(panel: SubFigure, outcome: DemoOutcome) -> None:
    pictures = outcome.pictures
    similarity = {(row["sees"], row["epsilon"]): row["ssim"] for row in outcome.results["attacks"]}
    rows = [("original", pictures.originals)]
    bare = similarity[(UNPROTECTED, None)]
    rows.append((f"no protection\nSSIM {bare:.2f}", pictures.attacked_embedding))
    rows += [
        (
            f"ε = {epsilon:g}\nSSIM {similarity[('our release', epsilon)]:.2f}",
            pictures.attacked[epsilon],
        )
        for epsilon in sorted(pictures.attacked, reverse=True)
    ]
    panel.suptitle("What an attacker draws", fontsize=12, fontweight="bold")
    _grid(panel, rows, inked(pictures.originals))


def _neighbours(panel: SubFigure, outcome: DemoOutcome) -> None:
    pictures, radius = outcome.pictures, outcome.results["settings"]["radius"]
    rows = [("original", pictures.originals), ("decoded", pictures.decoded)]
    rows += [
        ("neighbour", pictures.neighbours[:, index])
        for index in range(pictures.neighbours.shape[1])
    ]
    panel.suptitle(f"Decoded neighbours at R = {radius:g}", fontsize=12, fontweight="bold")
    _grid(panel, rows, inked(pictures.originals))


def _grid(panel: SubFigure, rows: list[tuple[str, npt.NDArray[np.float32]]], invert: bool) -> None:
    columns = min(_SHOWN, len(rows[0][1]))
    cells = panel.subplots(
        len(rows), columns, squeeze=False, gridspec_kw={"wspace": 0.03, "hspace": 0.03}
    )
    for line, (name, pictures) in zip(cells, rows, strict=True):
        for cell, picture in zip(line, pictures, strict=False):
            cell.imshow(
                picture,
                cmap="gray_r" if invert else "gray",
                vmin=0.0,
                vmax=1.0,
                interpolation="nearest",
            )
            cell.set_xticks([])
            cell.set_yticks([])
            cell.spines[:].set_color("#dcdad3")
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8.5, labelpad=6)
