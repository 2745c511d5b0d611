"""The demonstration as one picture file: accuracy, reconstructions and neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.demos.posthoc.demo import LABEL, OURS, PLAIN, DemoOutcome, best_published, inked
from reticent.pages.drawings import empty_drawing, png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

_COLOURS = {OURS: "#0b63a5", LABEL: "#00755a", PLAIN: "#6b3fa0"}
_BEST, _PUBLISHED, _QUIET = "#b8480c", "#8a8f93", "#58646c"
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
    best = best_published(results)
    others = [name for name in results["settings"]["published"] if name != best]
    for name in (*others, best, PLAIN, OURS, LABEL):
        rows = [row for row in results["rows"] if row["name"] == name]
        colour = _COLOURS.get(name, _BEST if name == best else _PUBLISHED)
        plain = name in others
        axes.errorbar(
            [row["epsilon"] for row in rows],
            [100 * row["accuracy"] for row in rows],
            yerr=[196 * row["standard_error"] for row in rows],
            color=colour,
            label=f"published: {name}" if name in results["settings"]["published"] else name,
            marker="." if plain else "o",
            linewidth=1.2 if plain else 2.2,
            capsize=2,
            zorder=2 if plain else 3,
        )
    for name, value in (
        ("no protection", results["accuracy_without_protection"]),
        ("one class always", results["accuracy_by_chance"]),
    ):
        axes.axhline(100 * value, color=_QUIET, linestyle=(0, (2, 3)), linewidth=1)
        axes.text(
            0.01,
            100 * value + 1,
            name,
            transform=axes.get_yaxis_transform(),
            color=_QUIET,
            fontsize=9,
        )
    totals = results["settings"]["epsilons"]
    axes.set_xscale("log")
    axes.set_xticks(totals, [f"{value:g}" for value in totals])
    axes.minorticks_off()
    axes.set_ylim(0, 100)
    axes.set_xlabel(
        f"proved total ε per picture (δ ≤ {results['settings']['delta']:g}, R = "
        f"{results['settings']['radius']:g})"
    )
    axes.set_ylabel("held-out accuracy of the server's model, %")
    axes.set_title("The same proof, different training", loc="left", fontsize=12, fontweight="bold")
    axes.grid(axis="y", color="#e6e4de")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        frameon=False, fontsize=9.5, loc="lower right", bbox_to_anchor=(1.0, 0.13), reverse=True
    )


def _attack(panel: SubFigure, outcome: DemoOutcome) -> None:
    pictures = outcome.pictures
    similarity = {(row["sees"], row["epsilon"]): row["ssim"] for row in outcome.results["attacks"]}
    rows = [("original", pictures.originals)]
    bare = similarity[("the embedding as it is sent today", None)]
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
