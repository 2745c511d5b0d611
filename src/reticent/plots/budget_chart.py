"""The spending of budgets over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING

import numpy as np

from reticent.core.extras import require
from reticent.ledger.charges import epsilon_value
from reticent.ledger.reports import Spending
from reticent.plots.lines import QUIET, dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito: told apart with every kind of colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def budget(axes: Axes, series: Sequence[Spending], *, legend: bool = True) -> Axes:
    """Draw the share of granted epsilon that each budget has spent over time on ``axes``.

    The dashed line is the whole grant of today.

    Args:
        axes: empty axes of matplotlib.
        series: result of ``Ledger.spending``, the tightest budget first. If nothing was spent, the
            axes say so.
        legend: whether a legend within the axes names the budgets and their remainders.

    Raises:
        MissingExtra: matplotlib is not installed.

    Example:
        >>> from reticent import plots
        >>> figure, axes = plots.one_panel()
        >>> [text.get_text() for text in plots.budget(axes, []).texts]
        ['nothing was spent yet']

    See Also:
        reticent.ledger.Ledger.spending: the series.
    """
    dress(axes, x_name="time (UTC)", y_name="spent, share of granted ε")
    axes.set_ylim(0, 1.08)
    if not series:
        axes.text(
            0.5, 0.5, "nothing was spent yet", ha="center", va="center", transform=axes.transAxes
        )
        axes.set_xticks([])
        return axes
    axes.axhline(1.0, color=QUIET, linewidth=1, linestyle="--")
    for number, item in enumerate(series):
        granted = epsilon_value(item.budget.granted_epsilon)
        left = epsilon_value(item.budget.left_epsilon)
        # The first point is the start of the first interval, when nothing was spent.
        width = item.at[1] - item.at[0] if len(item.at) > 1 else np.timedelta64(1, "s")
        axes.step(
            np.concatenate([[item.at[0] - width], item.at]),
            np.concatenate([[0.0], item.epsilon]) / granted,
            where="post",
            color=_COLOURS[number % len(_COLOURS)],
            linestyle="-" if number < len(_COLOURS) else ":",
            linewidth=2,
            label=f"{item.budget.scope.describe()}  (left {left:g} of {granted:g})",
        )
    dates = require("matplotlib.dates", extra="plots")
    locator = dates.AutoDateLocator(tz=UTC)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=UTC))
    if legend:
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, fontsize="small")
    return axes
