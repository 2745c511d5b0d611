"""A line chart of an experiment: the same numbers as a picture, a Markdown table and JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from papers.drawings import empty_drawing, png
from papers.line_figure import utility
from reticent.pages.line_chart import Level, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROLES = {
    "ours": ("ours", "circle"),
    "published": ("published", "triangle"),
    "PATE": ("label", "diamond"),
    "linear vote": ("label", "diamond"),
    "DP-SGD": ("best", "square"),
    "noisy gradient descent": ("best", "square"),
}
"""Style and marker of a series by the beginning of its name."""

_LINES = {"members": "dashdot", "global": "dashed", "by place": "dashed", "free": "dotted"}
"""Kind of line by a word of its name."""


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
        """The lines on ``axes``, without a legend."""
        utility(
            axes,
            # 0 has no place on a logarithmic axis; the table has it.
            [
                _series(name, [point for point in points if point[0] > 0 or not self.log_x])
                for name, points in self.series.items()
            ],
            [Level(f"{name} {_number(value)}", value) for name, value in self.levels.items()],
            x_name=self.x_name,
            y_name=self.y_name,
            y_range=self.y_range,
            title=self.title,
            log_x=self.log_x,
            shares=self.y_range is not None,
        )


def figure_of(charts: list[Chart]) -> bytes:
    """PNG of charts side by side, with one legend for all."""
    drawing = empty_drawing(max(8.6, 6.2 * len(charts)), 5.0)
    panels = drawing.subplots(1, len(charts), squeeze=False)[0]
    labels: dict[str, Any] = {}
    for chart, axes in zip(charts, panels, strict=True):
        chart.draw(axes)
        handles, names = axes.get_legend_handles_labels()
        labels.update(zip(names, handles, strict=True))
    drawing.legend(
        labels.values(),
        labels.keys(),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=9,
    )
    return png(drawing, dpi=130)


def _series(name: str, points: list[tuple[float, float]]) -> Series:
    style, marker = next(
        (role for word, role in _ROLES.items() if name.startswith(word)), ("", "circle")
    )
    line = next((line for word, line in _LINES.items() if word in name), "solid")
    return Series(name, tuple((x, y, 0.0) for x, y in points), style, marker, line)


def _number(value: float) -> str:
    return f"{value:.4f}".lstrip("0") if 0 < value < 1 else f"{value:.6g}"
