"""The Power Mechanism paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from papers.drawings import empty_drawing
from papers.power.published_mode import DP_ADAM_EPSILON
from papers.power.settings import PAPER_SERVERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = dict[str, Any]

_BINS = 50


def published_mode(means: Results, errors: Results) -> Figure:
    """The paper's Figures 4 to 11, in its order."""
    drawing = empty_drawing(13, 9.5)
    panels = drawing.subplots(3, 3).ravel()
    drawers = (
        _histograms,
        _other_histograms,
        _client_privacy,
        _client_utility,
        _servers,
        _joint,
        _accuracy,
        _shares,
        _powers,
    )
    for axes, draw in zip(panels, drawers, strict=True):
        draw(axes, means, errors)
        axes.legend(frameon=False, fontsize=7)
    drawing.suptitle(
        f"{means['data']}: published mode (its epsilon is a score, not a guarantee)", fontsize=11
    )
    return drawing


def _histogram(axes: Axes, means: Results, curves: list[tuple[str, list[float]]]) -> None:
    """Shares of rows per bin, from quantiles; what lies beyond the axis is named in the legend."""
    upper = 2.0 * max(float(name) for name in means["published"]["rows"])
    edges = np.linspace(0.0, upper, _BINS + 1)
    for label, quantiles in curves:
        values = np.asarray(quantiles)
        heights = np.histogram(values, bins=edges)[0] / len(values)
        beyond = float((values > upper).mean())
        axes.stairs(
            heights, edges, label=label + (f" ({beyond:.0%} beyond)" if beyond > 0.005 else "")
        )
    axes.set(xlabel="score of a row", ylabel="share of rows")


def _histograms(axes: Axes, means: Results, _: Results) -> None:
    found = means["published"]
    _histogram(axes, means, [("train", found["train scores"]), ("test", found["test scores"])])
    axes.set_title("Figures 4 and 5: scores, train and test", fontsize=9)


def _other_histograms(axes: Axes, means: Results, _: Results) -> None:
    baselines = means["baseline scores"]
    curves = [
        ("PowerLearn", means["published"]["train scores"]),
        ("without privacy loss", baselines["non-private"]),
        (f"DP-Adam, epsilon {DP_ADAM_EPSILON:g}", baselines["DP-Adam"]),
    ]
    _histogram(axes, means, curves)
    axes.set_title("Figure 10: scores of the baselines", fontsize=9)


def _client(axes: Axes, means: Results, key: str, title: str) -> None:
    for name, curves in means["clients"].items():
        axes.plot(range(1, len(curves[key]) + 1), curves[key], label=name)
    axes.set(xlabel="client step", ylabel=f"{key} loss")
    axes.set_title(title, fontsize=9)


def _client_privacy(axes: Axes, means: Results, _: Results) -> None:
    _client(axes, means, "privacy", "Figure 6, left: privacy loss on the client")


def _client_utility(axes: Axes, means: Results, _: Results) -> None:
    _client(axes, means, "utility", "Figure 6, right: utility loss on the client")


def _joint(axes: Axes, means: Results, _: Results) -> None:
    _client(axes, means, "joint", "Figure 8: joint loss (NonPriv: utility alone)")


def _servers(axes: Axes, means: Results, _: Results) -> None:
    for name, curve in means["servers"].items():
        axes.plot(
            curve["steps"],
            curve["accuracy"],
            label=name,
            linestyle="--" if name.startswith("DP-Adam") else "-",
        )
    axes.set(xlabel="server step", ylabel="accuracy", xscale="log")
    axes.set_title("Figure 7: accuracy along the server's training", fontsize=9)


def _accuracy(axes: Axes, means: Results, errors: Results) -> None:
    rows = means["published"]["rows"]
    scores = [float(name) for name in rows]
    for index, server in enumerate(PAPER_SERVERS):
        heights = [100 * row["on all test rows"][server] for row in rows.values()]
        spread = [
            100 * row["on all test rows"][server] for row in errors["published"]["rows"].values()
        ]
        axes.errorbar(
            scores,
            heights,
            yerr=np.nan_to_num(spread),
            fmt="-o",
            color=f"C{index}",
            markersize=3,
            label=server,
        )
        papers = [means["paper"][name][index] for name in rows if name in means["paper"]]
        axes.plot(
            [float(name) for name in rows if name in means["paper"]],
            papers,
            ":",
            color=f"C{index}",
            label=f"{server}, paper",
        )
    axes.set(xlabel="score", ylabel="accuracy, percent")
    axes.set_title("Figure 9: accuracy against the score", fontsize=9)


def _shares(axes: Axes, means: Results, _: Results) -> None:
    rows = means["published"]["rows"]
    scores = [float(name) for name in rows]
    for key, label in (("released", "train rows"), ("test released", "test rows")):
        axes.plot(scores, [row[key] for row in rows.values()], "-o", markersize=3, label=label)
    axes.set(xlabel="score", ylabel="share released", ylim=(0, 1.02))
    axes.set_title("What the filter lets pass", fontsize=9)


def _powers(axes: Axes, means: Results, _: Results) -> None:
    for power, losses in means["powers"].items():
        axes.plot(range(1, len(losses) + 1), losses, label=f"p = {power}")
    axes.set(xlabel="client step", ylabel="privacy loss")
    axes.set_title("Figure 11: applications of the encoder", fontsize=9)
