"""Drawings of a release's worth and leakage, on axes of matplotlib.

Every function takes axes, draws on them and returns them, so a drawing can stand in a figure of
your own. `one_panel` makes a new figure with axes, without a window. The figures of the
demonstrations, the tutorials and ``reticent ledger report --output`` are drawn by these functions.

The charts of the HTML pages are drawn from `Series` and `Level` too.
"""

from reticent.pages.drawings import empty_drawing, one_panel, png
from reticent.pages.line_chart import Level, Series
from reticent.plots.attack_chart import attack
from reticent.plots.budget_chart import budget
from reticent.plots.radius_chart import radius
from reticent.plots.utility_chart import utility

__all__ = [
    "Level",
    "Series",
    "attack",
    "budget",
    "empty_drawing",
    "one_panel",
    "png",
    "radius",
    "utility",
]
