"""The mechanism that a total and a number of answers ask for. Nothing private has a part in it."""

from __future__ import annotations

import math

import numpy as np

from reticent.accounting.calibration import epsilon_per_answer
from reticent.core.guarantees import AddRemove
from reticent.mechanisms import SignedDistanceRelease, StabilityResponse
from reticent.systems.certified.query import MechanismChoice

WRONG = 0.05
"""Mechanisms are compared by the least certified distance at which a released label is another one
in no more than this share of answers.
"""


def calibrated_choice(
    name: str, *, classes: int, epsilon: float, delta: float, answers: int
) -> MechanismChoice:
    """Return the mechanism, and its cost of one answer.

    With it ``answers`` answers cost at most (``epsilon``, ``delta``) together.

    "auto" is "stability" or "signed-distance", whichever needs less certified distance for a label
    that is right in 19 of 20 answers. It is the response where both need the same. That depends on
    the number of labels, the total and the number of answers, and on nothing else: a choice that
    looked at distances would tell of the records that they come from.

    Args:
        name: "auto", "stability", "signed-distance", or a published mechanism of pure epsilon.
        classes: number of labels.
        epsilon, delta: the total.
        answers: number of answers, fixed beforehand for "signed-distance".

    Example:
        >>> for answers in (1, 10, 1000):
        ...     print(calibrated_choice(
        ...         "auto", classes=2, epsilon=1.0, delta=1e-5, answers=answers).name)
        stability
        signed-distance
        signed-distance
    """
    if name == "signed-distance":
        return _gaussian(classes, epsilon, delta, answers)[0]
    each = epsilon_per_answer(epsilon=epsilon, delta=delta, answers=answers)
    if name != "auto":
        return MechanismChoice(name=name, epsilon=each, delta=0.0)
    response = MechanismChoice(name="stability", epsilon=each, delta=0.0)
    if delta == 0:
        return response
    choice, noise = _gaussian(classes, epsilon, delta, answers)
    return choice if _gaussian_distance(noise) < _response_distance(classes, each) else response


def enough_distance(*, classes: int, epsilon: float, delta: float, answers: int) -> float:
    """Return the least certified distance at which a label is right in 19 of 20 answers.

    Args:
        classes, epsilon, delta, answers: as ``calibrated_choice`` takes them.
    """
    each = epsilon_per_answer(epsilon=epsilon, delta=delta, answers=answers)
    found = _response_distance(classes, each)
    if delta > 0:
        noise = _gaussian(classes, epsilon, delta, answers)[1]
        found = min(found, _gaussian_distance(noise))
    return found


def _gaussian(
    classes: int, epsilon: float, delta: float, answers: int
) -> tuple[MechanismChoice, SignedDistanceRelease]:
    release = SignedDistanceRelease.for_answers(
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        answers=answers,
        adjacency=AddRemove(1),  # the noise is that of any adjacency
    )
    return (
        MechanismChoice(name="signed-distance", epsilon=release.epsilon, delta=release.delta),
        release,
    )


def _response_distance(classes: int, epsilon: float) -> float:
    response = StabilityResponse(classes=classes, epsilon=epsilon, adjacency=AddRemove(1))
    enough = (classes - 1) * response.wrong_probabilities <= WRONG
    return float(enough.argmax()) if enough.any() else math.inf


def _gaussian_distance(release: SignedDistanceRelease) -> float:
    low, high = -1, release.max_level
    while high - low > 1:
        middle = (low + high) // 2
        if release.right_probabilities(np.array([middle]))[0] >= 1 - WRONG:
            high = middle
        else:
            low = middle
    return float(high)
