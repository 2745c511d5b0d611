"""Worst pairs of training sets for the responses that a certified distance calibrates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from reticent.audit.worst_case import AuditCase, Scores
from reticent.mechanisms import DistanceToInstability, SignedDistanceRelease
from reticent.mechanisms.level_response import BinaryResponse
from reticent.noise import Sampler

_CERTAIN = 1e6
"""Score of an answer that only one of the two neighbours can give."""


def binary_response_case(
    mechanism: BinaryResponse, *, labels: tuple[int, int], levels: tuple[int, int], epsilon: float
) -> AuditCase:
    """Neighbours whose labels (0 or 1) and stable distances are given.

    Args:
        mechanism: smooth Cauchy or global sensitivity.
        labels, levels: of the two neighbours.
        epsilon: the claim to be examined.
    """
    logs = []
    for label, level in zip(labels, levels, strict=True):
        flip = float(mechanism.flip_probabilities([level])[0])
        logs.append(np.log([flip, 1.0 - flip] if label == 1 else [1.0 - flip, flip]))
    ratio = logs[0] - logs[1]

    def scores(label: int, level: int) -> Scores:
        return lambda runs, sampler: ratio[
            mechanism.release(np.full(runs, label), np.full(runs, level), sampler=sampler)
        ]

    name = f"{mechanism.name}, labels {labels}, distances {levels}"
    return AuditCase(name, epsilon, 0.0, scores(labels[0], levels[0]), scores(labels[1], levels[1]))


def distance_to_instability_case(
    mechanism: DistanceToInstability,
    *,
    answers: tuple[int, int],
    levels: tuple[int, int],
    epsilon: float,
    delta: float,
) -> AuditCase:
    """Neighbours whose answers (integers of at least 0) and stable distances are given.

    Args:
        mechanism: the test.
        answers, levels: of the two neighbours.
        epsilon, delta: the claim to be examined.
    """
    passing = [
        float(mechanism.pass_probabilities[min(level, mechanism.max_level)]) for level in levels
    ]
    withheld = _log_ratio(1.0 - passing[0], 1.0 - passing[1])
    scores = {-1: withheld}
    if answers[0] == answers[1]:
        scores[answers[0]] = _log_ratio(passing[0], passing[1])
    else:
        scores |= {answers[0]: _CERTAIN, answers[1]: -_CERTAIN}

    def run(answer: int, level: int) -> Callable[[int, Sampler], npt.NDArray[np.float64]]:
        def score(runs: int, sampler: Sampler) -> npt.NDArray[np.float64]:
            released, _ = mechanism.release(
                np.full(runs, answer), np.full(runs, level), sampler=sampler
            )
            return np.array([scores[value] for value in released.tolist()])

        return score

    name = f"{mechanism.name}, answers {answers}, distances {levels}"
    return AuditCase(name, epsilon, delta, run(answers[0], levels[0]), run(answers[1], levels[1]))


def signed_distance_case(
    mechanism: SignedDistanceRelease,
    *,
    labels: tuple[int, int],
    levels: tuple[int, int],
    answers: int,
    epsilon: float,
    delta: float,
) -> AuditCase:
    """Neighbours whose labels and stable distances are given, the same for every one of several
    answers.

    Args:
        mechanism: the release.
        labels, levels: of the two neighbours.
        answers: how many answers are seen together.
        epsilon, delta: the claim to be examined, for all of them.
    """
    right = mechanism.right_probabilities(levels)
    wrong = (1.0 - right) / (mechanism.classes - 1)
    chances = np.repeat(wrong[:, None], mechanism.classes, axis=1)
    chances[[0, 1], list(labels)] = right
    ratio = np.log(np.maximum(chances[0], 1e-300)) - np.log(np.maximum(chances[1], 1e-300))

    def scores(label: int, level: int) -> Scores:
        def run(runs: int, sampler: Sampler) -> npt.NDArray[np.float64]:
            asked = np.full(runs * answers, label), np.full(runs * answers, level)
            released = mechanism.release(*asked, sampler=sampler)
            return np.asarray(ratio[released].reshape(runs, answers).sum(axis=1))

        return run

    name = f"{mechanism.name}, labels {labels}, distances {levels}, {answers} answers"
    return AuditCase(
        name, epsilon, delta, scores(labels[0], levels[0]), scores(labels[1], levels[1])
    )


def _log_ratio(first: float, second: float) -> float:
    if min(first, second) <= 0.0:
        return _CERTAIN * float(np.sign(first - second))
    return math.log(first / second)
