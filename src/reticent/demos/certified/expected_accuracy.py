"""Exact expected accuracies of mechanisms that answer with one label, from certificates that are
known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.guarantees import AddRemove
from reticent.mechanisms import SignedDistanceRelease, StabilityResponse
from reticent.mechanisms.global_sensitivity import GlobalSensitivityResponse
from reticent.mechanisms.smooth_cauchy import SmoothCauchy
from reticent.systems.certified.choosing import calibrated_choice

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

OURS = "ours: stability response"
PUBLISHED = "published: smooth sensitivity, Cauchy"
GLOBAL = "published: global sensitivity, Laplace"

ADJACENCY = AddRemove(1)


@dataclass(frozen=True, eq=False)
class Answers:
    """What a fitted system knows about every query. Private; experiments only score it.

    Attributes:
        labels: the noise-free label, shape (n,).
        distances: its certified stable distance, shape (n,).
        votes: label of every member, shape (members, n).
        truth: the true label, shape (n,).
        classes: number of labels.
    """

    labels: Integers
    distances: Integers
    votes: Integers
    truth: Integers
    classes: int

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whether the noise-free label is true, shape (n,)."""
        return np.asarray(self.labels == self.truth)

    @property
    def noise_free(self) -> float:
        """Accuracy without noise."""
        return float(self.right.mean())


def ours(answers: Answers, epsilon: float) -> float:
    """Expected accuracy of the stability response."""
    response = StabilityResponse(classes=answers.classes, epsilon=epsilon, adjacency=ADJACENCY)
    level = np.minimum(answers.distances, response.max_level)
    given = np.where(
        answers.right, response.right_probabilities[level], response.wrong_probabilities[level]
    )
    return float(given.mean())


def certified(answers: Answers, epsilon: float, delta: float, asked: int) -> float:
    """Expected accuracy where ``asked`` answers cost (``epsilon``, ``delta``) together: by the
    stability response or by Gaussian noise on the signed distance, whichever the number asks for.
    """
    choice = calibrated_choice(
        "auto", classes=answers.classes, epsilon=epsilon, delta=delta, answers=asked
    )
    if choice.name == "stability":
        return ours(answers, choice.epsilon)
    release = choice.mechanism(answers.classes, ADJACENCY)
    assert isinstance(release, SignedDistanceRelease)
    told = release.right_probabilities(answers.distances)
    given = np.where(answers.right, told, (1.0 - told) / (answers.classes - 1))
    return float(given.mean())


def published(answers: Answers, epsilon: float) -> float:
    """Expected accuracy of the published Cauchy response, on the same certificates (every
    distance, so it is private).
    """
    flips = SmoothCauchy(epsilon=epsilon, adjacency=ADJACENCY).flip_probabilities(answers.distances)
    return accuracy_of_flips(answers, flips)


def global_sensitivity(answers: Answers, epsilon: float) -> float:
    """Expected accuracy of Laplace noise on the label."""
    flips = GlobalSensitivityResponse(epsilon=epsilon, adjacency=ADJACENCY).flip_probabilities(
        answers.distances
    )
    return accuracy_of_flips(answers, flips)


def accuracy_of_flips(answers: Answers, flips: Array) -> float:
    """Expected accuracy on two labels where ``flips``, shape (n,), are the chances that the
    other one is told.
    """
    return float(np.where(answers.right, 1.0 - flips, flips).mean())


PURE: dict[str, Callable[[Answers, float], float]] = {
    OURS: ours,
    PUBLISHED: published,
    GLOBAL: global_sensitivity,
}
"""Mechanisms for one answer of a pure epsilon, by name; the last two answer two labels only."""
