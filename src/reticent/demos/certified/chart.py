"""A line chart of an experiment: the same numbers as a picture, a Markdown table and JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reticent.pages.drawings import empty_drawing, png

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {
    "ours": "#0b63a5",
    "published": "#b8480c",
    "PATE": "#00755a",
    "linear vote": "#00755a",
    "DP-SGD": "#7a3b8f",
    "noisy gradient descent": "#7a3b8f",
}
_LEVELS = {"noise-free": (0, (2, 3)), "public rows alone": "--", "constant": "-."}
_STYLES = {"members": "-.", "global": "--", "by place": "--", "free": ":"}
_QUIET = "#58646c"


@dataclass(frozen=True)
class Chart:
    """Lines over one axis.

    Attributes:
        title: what is shown.
        x_name, y_name: names of the axes.
        series: by name, (x, y) pairs in rising order of x.
        levels: horizontal lines by name.
        log_x: whether x is logarithmic.
        y_range: ends of the y axis, or None to fit the lines.
        notes: what a reader has to know, one paragraph each.
    """

    title: str
    x_name: str
    y_name: str
    series: dict[str, list[tuple[float, float]]]
    levels: dict[str, float] = field(default_factory=dict)
    log_x: bool = True
    y_range: tuple[float, float] | None = (0.4, 1.02)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "title": self.title,
            "x": self.x_name,
            "y": self.y_name,
            "series": {
                name: [list(point) for point in points] for name, points in self.series.items()
            },
            "levels": self.levels,
            "notes": list(self.notes),
        }

    def markdown(self) -> str:
        """Title, notes and a table with one column per line.

        Example:
            >>> print(Chart("t", "x", "y", {"ours": [(1.0, 0.5)]}, {"noise-free": 0.9}).markdown())
            ## t
            <BLANKLINE>
            Without x: noise-free .9000.
            <BLANKLINE>
            | x | ours |
            |---|---|
            | 1 | .5000 |
            <BLANKLINE>
        """
        lines = [f"## {self.title}", ""]
        for note in self.notes:
            lines += [note, ""]
        if self.levels:
            levels = ", ".join(f"{name} {_number(value)}" for name, value in self.levels.items())
            lines += [f"Without x: {levels}.", ""]
        places = sorted({x for points in self.series.values() for x, _ in points})
        lines += [
            f"| {self.x_name} | {' | '.join(self.series)} |",
            "|---" * (len(self.series) + 1) + "|",
        ]
        values = {name: dict(points) for name, points in self.series.items()}
        for x in places:
            cells = [_number(values[name][x]) if x in values[name] else "" for name in self.series]
            lines.append(f"| {x:g} | {' | '.join(cells)} |")
        return "\n".join([*lines, ""])

    def draw(self, axes: Axes) -> None:
        """The lines on ``axes``."""
        for name, points in self.series.items():
            style = next((style for word, style in _STYLES.items() if word in name), "-")
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                color=_colour(name),
                linestyle=style,
                marker="o" if len(points) <= 20 else None,
                markersize=3.5,
                linewidth=2.4 if name.startswith("ours") else 1.6,
                zorder=3 if name.startswith("ours") else 2,
                label=name,
            )
        for name, value in self.levels.items():
            colour = _colour(name)
            axes.axhline(
                value,
                color=colour,
                linestyle=_LEVELS.get(name, (0, (2, 3))),
                linewidth=1.2,
                label=f"{name} ({value:.3f})",
            )
        if self.log_x:
            axes.set_xscale("log")
        if self.y_range is not None:
            axes.set_ylim(*self.y_range)
        axes.set_xlabel(self.x_name)
        axes.set_ylabel(self.y_name)
        axes.set_title(self.title, loc="left", fontsize=11, fontweight="bold")
        axes.grid(axis="y", color="#e6e4de")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)


def figure_of(charts: list[Chart]) -> bytes:
    """PNG of charts side by side, with one legend for all."""
    drawing = empty_drawing(max(8.6, 6.2 * len(charts)), 5.0)
    panels = drawing.subplots(1, len(charts), squeeze=False)[0]
    labels: dict[str, Any] = {}
    for chart, axes in zip(charts, panels, strict=True):
        chart.draw(axes)
        handles, names = axes.get_legend_handles_labels()
        if len(charts) == 1:
            labels.update(zip(names, handles, strict=True))
        else:
            # A level's height differs from panel to panel: its name stands in the panel, without a
            # number in the legend.
            labels.update(
                {name.split(" (")[0]: handle for name, handle in zip(names, handles, strict=True)}
            )
    drawing.legend(
        labels.values(),
        labels.keys(),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=9,
    )
    return png(drawing, dpi=130)


def _colour(name: str) -> str:
    return next((colour for word, colour in _COLOURS.items() if name.startswith(word)), _QUIET)


def _number(value: float) -> str:
    return f"{value:.4f}".lstrip("0") if 0 < value < 1 else f"{value:.6g}"
