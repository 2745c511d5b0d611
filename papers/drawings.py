"""Drawings of experiments: matplotlib without a window."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def empty_drawing(width: float, height: float) -> Figure:
    """Return a white drawing of ``width`` by ``height`` inches that arranges its panels itself."""
    return Figure(figsize=(width, height), facecolor="white", layout="constrained")


def one_panel() -> tuple[Figure, Axes]:
    """Return a drawing of one panel, 7 by 4.5 inches."""
    drawing = empty_drawing(7, 4.5)
    return drawing, drawing.add_subplot()


def png(drawing: Figure, *, dpi: int) -> bytes:
    """Return a drawing as the content of a PNG file, ``dpi`` pixels an inch."""
    buffer = io.BytesIO()
    drawing.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()
