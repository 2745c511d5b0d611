"""The figure of a ledger: how much of each budget was spent, over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from reticent.core.extras import require
from reticent.ledger.reports import Spending
from reticent.ledger.units import epsilon_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito: tell apart with every kind of colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def spending_figure(series: Sequence[Spending]) -> Figure:
    """Steps of the share of granted epsilon that each budget has spent; the dashed line is the
    whole grant of today.

    Args:
        series: of ``reports.spending``, the tightest budget first; nothing spent gives an empty
            figure that says so.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    figure: Figure = require("matplotlib.figure", extra="plots").Figure(
        figsize=(8.0, 4.5), layout="constrained"
    )
    axes = figure.add_subplot()
    axes.set_ylabel("spent, % of granted epsilon")
    axes.set_ylim(0, 108)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if not series:
        axes.text(
            0.5, 0.5, "nothing was spent yet", ha="center", va="center", transform=axes.transAxes
        )
        axes.set_xticks([])
        return figure
    axes.axhline(100, color="0.35", linewidth=1, linestyle="--")
    for number, item in enumerate(series):
        granted = epsilon_value(item.budget.granted_epsilon)
        label = (
            f"{item.budget.scope.describe()}  (left "
            f"{epsilon_value(item.budget.left_epsilon):g} of {granted:g})"
        )
        # The first point is the start of the first interval, when nothing was spent.
        width = item.at[1] - item.at[0] if len(item.at) > 1 else np.timedelta64(1, "s")
        at = np.concatenate([[item.at[0] - width], item.at])
        share = 100 * np.concatenate([[0.0], item.epsilon]) / granted
        colour, dashes = _COLOURS[number % len(_COLOURS)], "-" if number < len(_COLOURS) else ":"
        axes.step(at, share, where="post", color=colour, linestyle=dashes, linewidth=2, label=label)
    dates = require("matplotlib.dates", extra="plots")
    locator = dates.AutoDateLocator(tz=UTC)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=UTC))
    axes.set_xlabel("time (UTC)")
    axes.grid(axis="y", color="0.9")
    figure.legend(loc="outside upper left", frameon=False, fontsize="small", ncols=1)
    return figure


def spending_png(series: Sequence[Spending]) -> bytes:
    """The figure as PNG."""
    buffer = BytesIO()
    spending_figure(series).savefig(
        buffer, dpi=150, metadata={"Creation Time": datetime.now(UTC).isoformat(timespec="seconds")}
    )
    return buffer.getvalue()
