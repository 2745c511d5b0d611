"""The power demonstration as one picture: accuracy against epsilon for every neighbourhood, and
what an attacker gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.core.extras import require
from reticent.demos.power.attacks import NOTHING, PUBLISHED
from reticent.plots import Level, Series, empty_drawing, png, utility

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OURS, _RAW, _CEILING = "#0b63a5", "#b8480c", "#8a8f93"


def shown_range(results: dict[str, Any]) -> tuple[float, float]:
    """Ends of the accuracy axis, multiples of 5 % that all drawn figures lie between."""
    server = results["settings"]["server_shown"]
    values = [results["accuracy_by_chance"], results["accuracy_without_protection"][server]]
    for row in results["rows"]:
        values += [
            row["accuracy"][server],
            row["raw columns"][server],
            row["label response"],
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
        rows = [row for row in results["rows"] if row["radius"] == radius]
        utility(
            panels[index],
            accuracy_series(results, rows),
            accuracy_levels(results),
            x_name="proved ε per row",
            y_name="held-out accuracy of the server" if index == 0 else "",
            y_range=shown_range(results),
            title=f"Neighbours: {rows[0]['neighbours']}",
            legend=False,
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


def accuracy_series(results: dict[str, Any], rows: list[dict[str, Any]]) -> list[Series]:
    """Accuracy of the server that is shown against epsilon, with 95 % intervals, for the rows of
    one neighbourhood; ours last.
    """
    server, held_out = results["settings"]["server_shown"], results["data"]["held_out"]

    def line(title: str, key: str, style: str, marker: str) -> Series:
        points = tuple(
            (row["epsilon"], row[key][server], half_width(row[key][server], held_out))
            for row in rows
        )
        return Series(title, points, style, marker)

    response = tuple((row["epsilon"], row["label response"], 0.0) for row in rows)
    series = [
        Series("label response", response, "label", "diamond", "dashed"),
        line("raw columns", "raw columns", "best", "square"),
        line("ours", "accuracy", "ours", "circle"),
    ]
    if rows[0]["ceiling"] is not None:
        points = tuple((row["epsilon"], row["ceiling"], 0.0) for row in rows)
        series.insert(0, Series("ceiling", points, "published", "triangle"))
    return series


def accuracy_levels(results: dict[str, Any]) -> list[Level]:
    """What no epsilon changes."""
    server = results["settings"]["server_shown"]
    return [
        Level("no protection", results["accuracy_without_protection"][server]),
        Level("majority", results["accuracy_by_chance"]),
    ]


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
