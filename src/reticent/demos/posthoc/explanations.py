"""Sentences for numbers of a demonstration that could be taken for mistakes."""

from __future__ import annotations

from typing import Any

from reticent.demos.posthoc.demo import LABEL, OURS, PLAIN, at
from reticent.demos.posthoc.gaps import NOTHING, UNPROTECTED
from reticent.pages.parts import percent

_CLOSE = 0.005


def on_headline(results: dict[str, Any]) -> list[str]:
    """What the releases that are led with gain, and what they cost; see ``on_facts``."""
    embedding, label = (results["headline"][name] for name in (OURS, LABEL))
    least = percent(embedding["least"])
    found = [
        (
            f"At ε = {embedding['epsilon']:g} the released embedding takes an attacker "
            f"{_share(embedding)} of the way from what it draws without protection to what it "
            f"draws from nothing, and {_cost(embedding)}."
        ),
        (
            f"Where the label alone will do, ε = {label['epsilon']:g} goes {_share(label)} of the "
            f"way and {_cost(label)}."
        ),
    ]
    if embedding["met"]:
        found.append(
            f"Shown is the ε that loses least among those that close at least {least} of that gap, "
            "picked on these same pictures."
        )
    else:
        found.append(
            f"No ε that was tried closes {least} of that gap; shown is the one that closes most. "
            "There is no case for releasing this embedding at these settings: release the label, "
            "or take a smaller ε."
        )
    return found


def on_facts(results: dict[str, Any]) -> list[str]:
    """What stands beside the main numbers.

    Args:
        results: of the demonstration.

    Returns:
        Sentences, as plain text; only those that apply.
    """
    epsilon = results["headline"][OURS]["epsilon"]
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
    epsilon = results["headline"][OURS]["epsilon"]
    seen = {(row["sees"], row["epsilon"]): row["ssim"] for row in results["attacks"]}
    bare, nothing = seen[UNPROTECTED, None], seen[NOTHING, 0.0]
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


def _share(gap: dict[str, Any]) -> str:
    return percent(max(0.0, gap["closed"]))


def _cost(gap: dict[str, Any]) -> str:
    points = 100 * gap["lost"]
    if points < 0.05:
        return "costs no accuracy against no protection"
    return f"costs {points:.1f} points of accuracy against no protection"


def _response(results: dict[str, Any], epsilon: float) -> float:
    return next(
        float(row["accuracy"])
        for row in results["randomised_response"]
        if row["epsilon"] == epsilon
    )
