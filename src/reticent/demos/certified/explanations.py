"""Sentences for numbers of a demonstration that could be taken for mistakes, and for what they mean
for a choice of method.
"""

from __future__ import annotations

from typing import Any

from reticent.demos.certified.expected_accuracy import OURS
from reticent.demos.certified.rungs import CONSTANT, DELTA, DESCENT, PUBLIC, VOTE
from reticent.pages.parts import percent

_CLOSE = 0.005
_GUESS = 0.05


def on_facts(results: dict[str, Any]) -> list[str]:
    """What stands beside the main numbers.

    Args:
        results: of the demonstration.

    Returns:
        Sentences, as plain text; only those that apply.
    """
    at, free = results["accuracy_at_epsilon"], results["accuracy_noise_free"]
    found = []
    if at[PUBLIC] >= at[OURS] - _CLOSE:
        found.append(
            f"Public rows alone are as good here: {results['public_rows']:,} of them with labels "
            f"have {percent_of(at[PUBLIC])}, the certified answers {percent_of(at[OURS])}. With "
            "such public rows nothing private is needed; private records pay where there are none."
        )
    best = max((VOTE, DESCENT), key=lambda name: at[name])
    if at[best] > at[OURS] + _CLOSE:
        found.append(
            f"Another method is better at this guarantee: {best} has {percent_of(at[best])}, the "
            f"certified answers {percent_of(at[OURS])}."
        )
    if max(at[OURS], results["accuracy_released"]) > free:
        found.append(
            "More right answers than without protection are no mistake: a randomised label is now "
            "and then right where the model is wrong."
        )
    if at[CONSTANT] < 1.0 / results["classes"]:
        found.append(
            f"The constant has {percent_of(at[CONSTANT])}, less than a guess: the label that is "
            "most frequent among the public rows is not so among the queries."
        )
    return found


def on_accuracy(results: dict[str, Any]) -> list[str]:
    """What stands beside the accuracy of one answer; see ``on_facts``."""
    series, classes = results["accuracy"]["series"], results["classes"]
    at, free = results["accuracy_at_epsilon"], results["accuracy_noise_free"]
    found = [
        (
            f"Noisy gradient descent needs a δ ({DELTA:g} here), and its ε covers any number of "
            "answers; the ε of all others is that of one answer, at δ = 0. Public rows alone and "
            "the constant use no private record, so no ε changes them."
        )
    ]
    guessing = [name for name, points in series.items() if points[0][1] < 1.0 / classes + _GUESS]
    if guessing:
        found.append(
            f"About {percent(1.0 / classes)} at the left is what guessing has. It is no mistake: "
            f"at that ε the noise of {' and of '.join(guessing)} is larger than what it hides."
        )
    if abs(at[PUBLIC] - free) < _CLOSE:
        found.append(
            "The levels of public rows alone and of the model without noise lie on each other: "
            "two classifiers of different rows that come equally close to the best possible one."
        )
    return found


def on_many(results: dict[str, Any]) -> list[str]:
    """What stands beside the accuracy of many answers; see ``on_facts``."""
    series = results["many"]["series"]
    ours, descent = series["ours: certified"], series[DESCENT]
    found = [
        (
            "The line of noisy gradient descent is level because its model is the release: it "
            "answers any number of queries at one price."
        )
    ]
    ahead = [
        int(answers)
        for (answers, one), (_, other) in zip(ours, descent, strict=True)
        if one >= other
    ]
    found.append(
        f"Certified answers are ahead of it, or level, up to {max(ahead):,} of the numbers shown."
        if ahead
        else "It is ahead of the certified answers at every number shown."
    )
    return found


def on_fraction(results: dict[str, Any]) -> list[str]:
    """What stands beside the certified fraction; see ``on_facts``."""
    if results["median_distance"] < results["k_max"]:
        return []
    return [
        (
            f"Half of the queries and more survive {results['k_max']}, which is the largest number "
            "that was certified: what they really survive is more, and is not known."
        )
    ]


def on_total(results: dict[str, Any]) -> list[str]:
    """What stands beside the total of many answers; see ``on_facts``."""
    first, stated = f"{results['totals'][0]['epsilon']:.3g}", f"{results['epsilon']:.3g}"
    if float(first) >= float(stated):
        return []
    return [
        (
            f"That one answer costs {first} and not {stated} is no mistake: the "
            "total may fail with probability δ, which one answer alone does not need."
        )
    ]


def percent_of(share: float) -> str:
    """A share with one digit after the point.

    Example:
        >>> percent_of(0.9155)
        '91.5 %'
    """
    return f"{100 * share:.1f} %"
