"""The success of attackers, against the most that the guarantee allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from reticent.core.errors import InvalidInput
from reticent.pages.line_chart import Level, Series
from reticent.plots.lines import LEGEND, draw_levels, draw_line, dress, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REFUTED = "#b3261e"


def attack(
    axes: Axes,
    attacks: Sequence[Series],
    cap: Series,
    *,
    chance: float,
    x_name: str = "claimed ε",
    y_name: str = "attacker succeeds",
    title: str = "",
    legend: bool = True,
) -> Axes:
    """Draw the measured success of attacks, the proved cap and the region beyond it on ``axes``.

    An attack whose whole 95 % interval lies above the cap refutes the claim: its point is crossed
    and named "claim refuted". One below the cap proves nothing, since a better attack may exist.

    Args:
        axes: empty axes of matplotlib.
        attacks: one series per attack, with points (epsilon, share of attempts that succeed, half
            width of its 95 % interval).
        cap: the largest success that the claim allows, by epsilon. Between its points it is taken
            to be linear in the logarithm of epsilon, so give it at the attacks' epsilons.
        chance: success of somebody who sees no answer.
        x_name, y_name: names of the axes.
        title: title above the axes, or empty.
        legend: whether the lines are named in a legend within the axes.

    Raises:
        InvalidInput: no attack, an attack at an epsilon that the cap does not cover, or an epsilon
            at or below 0.
        MissingExtra: matplotlib is not installed.

    Example:
        An attacker guesses which of two inputs was released. Under epsilon-differential privacy, no
        guess is right with a probability above 1 / (1 + e^-epsilon).

        >>> import math
        >>> from reticent import plots
        >>> cap = plots.Series(
        ...     "cap", tuple((e, 1 / (1 + math.exp(-e)), 0.0) for e in (0.5, 1.0, 2.0)), "published"
        ... )
        >>> seen = plots.Series("guesser", ((0.5, 0.61, 0.01), (1.0, 0.80, 0.01)), "best")
        >>> figure, axes = plots.one_panel()
        >>> [text.get_text() for text in plots.attack(axes, [seen], cap, chance=0.5).texts]
        ['claim refuted', 'guessing']

    References:
        Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy",
        arXiv:1311.0776: the most that a guarantee allows a test between two neighbours.
    """
    if not attacks:
        raise InvalidInput("attacks: expected at least one, got none")
    draw_line(axes, cap)
    x, most, _ = np.asarray(cap.points, dtype=np.float64).T
    logarithmic(axes, sorted({place for one in (*attacks, cap) for place, _, _ in one.points}))
    axes.fill_between(x, most, 1.0, color=_REFUTED, alpha=0.06, linewidth=0)
    for one in attacks:
        draw_line(axes, one)
        for place, success, half in one.points:
            if not x.min() <= place <= x.max():
                raise InvalidInput(
                    f"attacks: {one.name!r} has a point at epsilon={place:g}; expected epsilons "
                    f"from {x.min():g} to {x.max():g}, where the cap is known"
                )
            if success - half > np.interp(np.log(place), np.log(x), most):
                axes.plot(place, success, "x", color=_REFUTED, markersize=12, markeredgewidth=2.5)
                axes.annotate(
                    "claim refuted",
                    (place, success),
                    (0, 12),
                    textcoords="offset points",
                    ha="center",
                    color=_REFUTED,
                    fontsize=9,
                )
    axes.set_ylim(0.0, 1.0)
    dress(axes, x_name=x_name, y_name=y_name, title=title)
    draw_levels(axes, [Level("guessing", chance)])
    if legend:
        axes.legend(**LEGEND)
    return axes
