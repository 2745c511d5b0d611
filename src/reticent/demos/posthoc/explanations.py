"""Sentences for numbers of a demonstration that could be taken for mistakes."""

from __future__ import annotations

from typing import Any

from reticent.demos.posthoc.demo import LABEL, OURS, PLAIN, at
from reticent.pages.parts import percent

_CLOSE = 0.005


def on_facts(results: dict[str, Any]) -> list[str]:
    """What stands beside the main numbers.

    Args:
        results: of the demonstration.

    Returns:
        Sentences, as plain text; only those that apply.
    """
    epsilon = results["settings"]["bundle_epsilon"]
    ours, plain, label = (at(results, name, epsilon)["accuracy"] for name in (OURS, PLAIN, LABEL))
    without = results["accuracy_without_protection"]
    response = _response(results, epsilon)
    found = []
    if plain > ours + _CLOSE:
        found.append(
            f"Noise on the embedding itself got {percent(plain)} here, and ours {percent(ours)}. "
            "Ours is the better of that same noise and a trained network on calibration "
            "pictures; where the two are level, held-out pictures can turn it around by the width "
            "of an interval."
        )
    if label > without - _CLOSE:
        found.append(
            f"{percent(label)} with only the label and {percent(without)} without protection are "
            "no mistake: they are two models. The device that releases a label has a classifier of "
            "its own, trained for that; the server's has to make do with the embedding, which was "
            "not made for this question."
        )
    found.append(
        f"Randomised response on the label, which hides any two pictures from each other, would be "
        f"right on {percent(response)} at this ε"
        + (
            ". It is the better choice here: as accurate, and the stronger promise."
            if response >= label - _CLOSE
            else "; what is gained above it comes from protecting similar pictures only."
        )
    )
    return found


def on_attack(results: dict[str, Any]) -> list[str]:
    """What stands beside the attacker's pictures; see ``on_facts``."""
    epsilon = results["settings"]["bundle_epsilon"]
    seen = {(row["sees"], row["epsilon"]): row["ssim"] for row in results["attacks"]}
    bare, nothing = seen["the embedding as it is sent today", None], seen["nothing", 0.0]
    ours = seen["our release", epsilon]
    gap = (bare - ours) / (bare - nothing)
    return [
        f"At ε = {epsilon:g} the attacker is {percent(max(0.0, gap))} of the way from what it "
        f"draws without protection ({bare:.2f}) to what it draws without any answer "
        f"({nothing:.2f}). So this ε hides which of several similar pictures it was, and little "
        "of what kind of picture it is; whoever wants to hide that has to take a smaller ε or a "
        "larger R, and pays in accuracy."
        if bare > nothing
        else "The attacker draws no better with the embedding than without: it learnt too little."
    ]


def _response(results: dict[str, Any], epsilon: float) -> float:
    return next(
        float(row["accuracy"])
        for row in results["randomised_response"]
        if row["epsilon"] == epsilon
    )
