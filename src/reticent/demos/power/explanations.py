"""Sentences for numbers of a demonstration that could be taken for mistakes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from reticent.demos.power.chart import half_width
from reticent.pages.parts import percent

_CLOSE = 0.01


def on_facts(results: dict[str, Any]) -> list[str]:
    """What stands beside the main numbers.

    Args:
        results: of the demonstration.

    Returns:
        Sentences, as plain text; only those that apply.
    """
    server = results["settings"]["server_shown"]
    epsilon, radius = results["settings"]["stored"]
    at = {row["radius"]: row for row in results["rows"] if row["epsilon"] == epsilon}
    ours, majority = at[radius]["accuracy"][server], results["accuracy_by_chance"]
    found = []
    weaker = [row for other, row in at.items() if other is not None]
    if radius is None and any(row["accuracy"][server] <= ours + _CLOSE for row in weaker):
        width = 100 * half_width(ours, results["data"]["held_out"])
        found.append(
            "The promise for near records alone is weaker and no more accurate here. That is no "
            "mistake: how a record is released was chosen on public rows for each promise by "
            f"itself, and the figures are good to about {width:.0f} points."
        )
    if at[radius]["raw columns"][server] <= majority + _CLOSE:
        found.append(
            f"Noise on the raw columns leaves what always naming one class gets "
            f"({percent(majority)}): {results['data']['columns']} columns share one ε, and each "
            "keeps too little."
        )
    response = at[radius]["label response"]
    found.append(
        f"The simplest rival releases a label: a model of the public rows names it on the device, "
        f"and randomised response hides it. That is right on {percent(response)} at ε = "
        f"{epsilon:g}"
        + (
            ". For this one question it is as good; released values serve other models too."
            if response >= ours - _CLOSE
            else "."
        )
    )
    return found


def on_accuracy(results: dict[str, Any]) -> list[str]:
    """What stands beside the charts; see ``on_facts``."""
    majority = results["accuracy_by_chance"]
    stuck = [
        f"{row['epsilon']:g}"
        for row in results["rows"]
        if row["ceiling"] is not None and row["ceiling"] <= majority + 1e-9
    ]
    found = []
    if stuck:
        found.append(
            f"At ε = {', '.join(stuck)} every line for any two records lies at the majority rate. "
            "That is no defect of a mechanism: the ceiling is there, for every release that there "
            "can be."
        )
    server, held_out = results["settings"]["server_shown"], results["data"]["held_out"]
    for radius in results["settings"]["radii"]:
        shares = [row["accuracy"][server] for row in results["rows"] if row["radius"] == radius]
        if any(after < before for before, after in pairwise(shares)):
            found.append(
                "A line that falls while ε rises is one run's scatter: each point is good to about "
                f"{100 * half_width(shares[0], held_out):.0f} points."
            )
            break
    return found
