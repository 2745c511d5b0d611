"""What a release gains against an attacker, and what that costs: the numbers a demonstration leads
with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

UNPROTECTED = "the embedding as it is sent today"
"""What an attacker sees without protection."""

NOTHING = "nothing"
"""What an attacker sees who is told nothing."""


def gaps_closed(
    rows: Sequence[dict[str, Any]],
    attacks: Sequence[dict[str, Any]],
    *,
    without: float,
    sees: Mapping[str, str],
) -> list[dict[str, Any]]:
    """For each of our releases: how much of the way from what an attacker gets without protection
    to what it gets from nothing it goes, in structural similarity, and what that costs in accuracy.

    Args:
        rows, attacks: results.
        without: accuracy without protection.
        sees: of each of our releases by name, what its attacker is said to see.

    Returns:
        One entry for each release; where an attacker draws no better with the embedding than
        without, there is no gap, and none of it is closed.
    """
    ssim = {(attack["sees"], attack["epsilon"]): attack["ssim"] for attack in attacks}
    bare, blind = ssim[UNPROTECTED, None], ssim[NOTHING, 0.0]
    return [
        {
            "name": row["name"],
            "epsilon": row["epsilon"],
            "closed": (bare - ssim[sees[row["name"]], row["epsilon"]]) / (bare - blind)
            if bare > blind
            else 0.0,
            "lost": without - row["accuracy"],
        }
        for row in rows
        if row["name"] in sees
    ]


def headline(gaps: Sequence[dict[str, Any]], *, least: float) -> dict[str, Any]:
    """Of several releases that which loses least accuracy among those that close at least a share
    of the gap, or that which closes most where none closes as much. Losses count in whole points,
    since some hundred pictures tell no less; of equal ones that of the smallest epsilon is taken.

    Args:
        gaps: of ``gaps_closed``.
        least: share of the gap, in (0, 1].

    Returns:
        Its entry, with ``least``, and ``met``: whether it closes as much.

    Example:
        >>> few = {"epsilon": 1.0, "closed": 0.6, "lost": 0.4}
        >>> some = {"epsilon": 2.0, "closed": 0.4, "lost": 0.2}
        >>> headline([few, some], least=0.3)["epsilon"], headline([few, some], least=0.7)["met"]
        (2.0, False)
        >>> more = {"epsilon": 5.0, "closed": 0.4, "lost": 0.198}  # as much as some
        >>> headline([more, some], least=0.3)["epsilon"]
        2.0
    """
    enough = [gap for gap in gaps if gap["closed"] >= least]
    found = (
        min(enough, key=lambda gap: (round(100 * max(gap["lost"], 0.0)), gap["epsilon"]))
        if enough
        else max(gaps, key=lambda gap: gap["closed"])
    )
    return {**found, "least": least, "met": bool(enough)}
