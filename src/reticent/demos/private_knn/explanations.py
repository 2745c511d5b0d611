"""Sentences for numbers of a demonstration that could be taken for mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reticent.pages.parts import percent

_CLOSE = 0.005


def on_facts(results: Mapping[str, Any]) -> list[str]:
    """What stands beside the main numbers.

    Args:
        results: of the demonstration.

    Returns:
        Sentences, as plain text; only those that apply.
    """
    if results["student"] <= results["released right"] + _CLOSE:
        return []
    return [
        (
            f"A student that is right more often ({percent(results['student'])}) than the labels "
            f"it learnt from ({percent(results['released right'])}) is no mistake: wrong labels "
            "are scattered, and it learns what the others have in common."
        )
    ]


def on_rungs(results: Mapping[str, Any], rungs: Mapping[str, float], bare: str) -> list[str]:
    """What stands beside the other ways.

    Args:
        results: of the demonstration.
        rungs: what other ways get right, by name.
        bare: name of the one without protection.
    """
    others = {name: right for name, right in rungs.items() if name != bare}
    best = max(others, key=lambda name: others[name])
    found = []
    if others[best] > results["student"] + _CLOSE:
        found.append(
            f"Another way is better here: {best} is right on {percent(others[best])}, the student "
            f"on {percent(results['student'])}. Every voted label is paid for by itself; noisy "
            "sums over all records are paid for once. Votes pay off where few records, or records "
            "that can be compared with hardly any features, have to be asked. The command "
            "reticent plan tries all of them on public rows."
        )
    found.append(
        "That public pictures are labelled already would be one more way, and often the best; "
        "here they are not, and their labels are read for scoring alone."
    )
    return found
