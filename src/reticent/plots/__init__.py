"""Drawings of what a release is worth and what it gives away, on axes of matplotlib.

Every function takes axes, draws on them and gives them back, so a drawing can stand in a figure of
one's own. `one_panel` makes a figure with axes where there is none yet, without a window. What the
demonstrations, the tutorials and ``reticent ledger report --output`` show is drawn by these.

`Series` and `Level` are what the charts of the HTML pages are drawn from too.
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
