"""The power demonstration as one picture: accuracy against epsilon for every neighbourhood, and
what an attacker gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.core.extras import require
from reticent.demos.power.attacks import NOTHING, PUBLISHED
from reticent.pages.drawings import empty_drawing, png

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OURS, _RAW, _CEILING, _QUIET = "#0b63a5", "#b8480c", "#8a8f93", "#58646c"


def shown_range(results: dict[str, Any]) -> tuple[float, float]:
    """Ends of the accuracy axis, multiples of 5 % that all drawn figures lie between."""
    server = results["settings"]["server_shown"]
    values = [results["accuracy_by_chance"], results["accuracy_without_protection"][server]]
    for row in results["rows"]:
        values += [
            row["accuracy"][server],
            row["raw columns"][server],
            *([] if row["ceiling"] is None else [row["ceiling"]]),
        ]
    low, high = min(values) - 0.02, max(values) + 0.02
    return max(0.0, np.floor(20 * low) / 20), min(1.0, np.ceil(20 * high) / 20)


def half_width(share: float, rows: int) -> float:
    """Half of the 95 % interval of a share of ``rows`` independent rows.

    Example:
        >>> round(half_width(0.5, 10_000), 4)
        0.0098
    """
    return float(1.96 * np.sqrt(share * (1.0 - share) / rows))


def figure(results: dict[str, Any]) -> bytes:
    """PNG: one panel per neighbourhood, and one for the attacks."""
    radii = results["settings"]["radii"]
    drawing = empty_drawing(4.1 * len(radii) + 4.6, 4.4)
    panels = drawing.subplots(
        1, len(radii) + 1, squeeze=False, gridspec_kw={"width_ratios": [*[1.0] * len(radii), 0.9]}
    )[0]
    for index, radius in enumerate(radii):
        _accuracy(
            panels[index],
            results,
            [row for row in results["rows"] if row["radius"] == radius],
            first=index == 0,
        )
    _attacks(panels[-1], results)
    named = {
        name: line
        for panel in panels[:-1]
        for line, name in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    drawing.legend(
        named.values(), named, loc="outside lower left", ncols=3, frameon=False, fontsize=9.5
    )
    return png(drawing, dpi=150)


def _accuracy(
    axes: Axes, results: dict[str, Any], rows: list[dict[str, Any]], *, first: bool
) -> None:
    server, epsilons = results["settings"]["server_shown"], [row["epsilon"] for row in rows]
    if rows[0]["ceiling"] is not None:
        heights = [100 * row["ceiling"] for row in rows]
        axes.plot(
            epsilons,
            heights,
            color=_CEILING,
            marker="^",
            linewidth=1.3,
            label="ceiling of any such release",
        )
    for key, name, colour, marker in (
        ("raw columns", "raw columns", _RAW, "s"),
        ("accuracy", "reticent", _OURS, "o"),
    ):
        shares = [row[key][server] for row in rows]
        axes.errorbar(
            epsilons,
            [100 * share for share in shares],
            yerr=[100 * half_width(share, results["data"]["held_out"]) for share in shares],
            color=colour,
            marker=marker,
            linewidth=2.2,
            capsize=2,
            label=name,
        )
    for name, value, side, lift in (
        ("no protection", results["accuracy_without_protection"][server], "bottom", 2),
        ("majority", results["accuracy_by_chance"], "top", -4),
    ):
        axes.axhline(100 * value, color=_QUIET, linestyle=(0, (2, 3)), linewidth=1)
        axes.annotate(
            name,
            (0.4, 100 * value),
            (0, lift),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            color=_QUIET,
            fontsize=9,
            va=side,
            ha="center",
        )
    low, high = shown_range(results)
    axes.set_ylim(100 * low, 100 * high)
    ticker = require("matplotlib.ticker", extra="plots")
    axes.yaxis.set_major_locator(ticker.MultipleLocator(5 if high - low <= 0.5 else 20))
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{value:g}" for value in epsilons])
    axes.minorticks_off()
    axes.set_xlabel("proved ε per row")
    if first:
        axes.set_ylabel("held-out accuracy of the server, %")
    axes.set_title(
        f"Neighbours: {rows[0]['neighbours']}", loc="left", fontsize=11, fontweight="bold"
    )
    axes.grid(axis="y", color="#e6e4de")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _attacks(axes: Axes, results: dict[str, Any]) -> None:
    """Bars: categories right, or where a table has none, how far numbers are off."""
    qualities = results["attacks"]["qualities"]
    words = qualities[0]["categories"] is not None
    shares = [100 * quality["categories" if words else "number_error"] for quality in qualities]
    epsilon = results["settings"]["stored"][0]
    names = {PUBLISHED: "published mode,\ninverted", NOTHING: "nothing seen"}
    labels = [
        names.get(quality["sees"], f"ε = {epsilon:g},\n{quality['sees']}") for quality in qualities
    ]
    colours = [
        {PUBLISHED: _RAW, NOTHING: _CEILING}.get(quality["sees"], _OURS) for quality in qualities
    ]
    places = np.arange(len(shares))
    axes.barh(places, shares, color=colours, height=0.6)
    for place, share in enumerate(shares):
        axes.text(share + 0.012 * max(shares), place, f"{share:.1f} %", va="center", fontsize=9)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.2 * max(shares))
    axes.set_xticks(np.linspace(0.0, 100.0, 5) if words else axes.get_xticks()[:-1])
    ticker = require("matplotlib.ticker", extra="plots")
    axes.xaxis.set_major_formatter(ticker.PercentFormatter(decimals=0 if words else 1))
    axes.set_xlabel(
        "categories that the attacker gets right" if words else "error of numbers, share of range"
    )
    axes.set_title("What an attacker gets", loc="left", fontsize=11, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
