"""For each mechanism, the worst pair of neighbours that we know, and the best score of an answer.

A case runs the mechanism for real, on either neighbour, and turns every answer into its
log-likelihood ratio. By the Neyman-Pearson lemma no other score makes the two neighbours easier
to tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.audit.lower_bounds import AuditResult, epsilon_lower_bound
from reticent.core.arrays import Array
from reticent.core.errors import InvalidInput
from reticent.core.norms import Norm
from reticent.mechanisms import (
    AdditiveMechanism,
    GaussianMechanism,
    LaplaceTestRelease,
    NoisyMaxRelease,
    ProposeTestRelease,
    SoftmaxRelease,
    StabilityRelease,
    StabilityResponse,
)
from reticent.noise import Sampler
from reticent.published.posthoc import PublishedPosthoc

Scores = Callable[[int, Sampler], Array]

_AT_ONCE = 2**16

_CERTAIN = 1e6
"""Score of an answer that only one of the two neighbours can give."""


@dataclass(frozen=True)
class AuditCase:
    """A mechanism on two neighbours.

    Attributes:
        name: mechanism and pair, in words.
        epsilon: the claim to be examined.
        delta: the delta of that claim.
        first: runs and scores the mechanism on one neighbour: (runs, sampler) -> shape (runs,).
        second: the same on the other neighbour.
    """

    name: str
    epsilon: float
    delta: float
    first: Scores
    second: Scores

    def run(self, *, runs: int, confidence: float, sampler: Sampler) -> AuditResult:
        """The lower bound on epsilon that ``runs`` runs on each neighbour establish."""
        first, second = (_many(scores, runs, sampler) for scores in (self.first, self.second))
        return epsilon_lower_bound(first, second, delta=self.delta, confidence=confidence)


def _many(scores: Scores, runs: int, sampler: Sampler) -> Array:
    """Scores of ``runs`` runs, some at a time: a million rows at once would spend their time on
    fetching memory.
    """
    return np.concatenate(
        [scores(min(_AT_ONCE, runs - start), sampler) for start in range(0, runs, _AT_ONCE)]
    )


def worst_shift(additive: AdditiveMechanism) -> Array:
    """A difference of ``additive.sensitivity`` that it hides no better than any other; shape (m,).

    One coordinate for l1 and l2, all coordinates for l-infinity.
    """
    shift = np.zeros(additive.dimension)
    shift[: additive.dimension if additive.norm is Norm.LINF else 1] = additive.sensitivity
    return shift


def additive_case(
    additive: AdditiveMechanism, *, shift: Array, epsilon: float, delta: float
) -> AuditCase:
    """The mechanism on the values 0 and ``shift`` (shape (m,)), against a claim of (epsilon,
    delta).
    """

    def scores(center: Array) -> Scores:
        def run(runs: int, sampler: Sampler) -> Array:
            values = np.broadcast_to(center, (runs, additive.dimension))
            return _vector_scores(additive, additive.release(values, sampler=sampler), shift)

        return run

    return AuditCase(
        additive.name, epsilon, delta, scores(np.zeros(additive.dimension)), scores(shift)
    )


def propose_test_release_case(
    mechanism: ProposeTestRelease,
    *,
    levels: tuple[int, int],
    shift: Array,
    epsilon: float,
    delta: float,
) -> AuditCase:
    """Neighbours at ``levels``, whose values are 0 and ``shift`` (shape (m,)).

    Raises:
        InvalidInput: the mechanism releases something else than a vector.
    """
    additive = mechanism.inner
    if not isinstance(additive, AdditiveMechanism):
        raise InvalidInput(
            f"inner={type(additive).__name__}: expected an additive mechanism; audit one for "
            "labels by itself"
        )
    chances = (
        float(mechanism.pass_probabilities[levels[0]]),
        float(mechanism.pass_probabilities[levels[1]]),
    )

    def scores(center: Array, level: int) -> Scores:
        def run(runs: int, sampler: Sampler) -> Array:
            values = np.broadcast_to(center, (runs, len(shift)))
            released, withheld = mechanism.release(values, np.full(runs, level), sampler=sampler)
            return _tested_scores(_vector_scores(additive, released, shift), withheld, chances)

        return run

    first, second = scores(np.zeros(len(shift)), levels[0]), scores(shift, levels[1])
    return AuditCase(
        f"{mechanism.name}, levels {levels[0]} and {levels[1]}", epsilon, delta, first, second
    )


def worst_levels(mechanism: ProposeTestRelease) -> tuple[int, int]:
    """Neighbouring levels, the higher one first, at which passing is still limited by epsilon: p
    at most 1/2 after.
    """
    below_half = np.flatnonzero(mechanism.pass_probabilities[1:] <= 0.5)
    lower = int(below_half[-1]) if len(below_half) else 0
    return lower + 1, lower


def laplace_test_case(
    mechanism: LaplaceTestRelease | PublishedPosthoc,
    *,
    radii: tuple[float, float],
    shift: Array,
    epsilon: float,
    delta: float,
) -> AuditCase:
    """Neighbours with stability radii ``radii``, whose values are 0 and ``shift`` (shape (m,))."""
    chances = (_pass_chance(mechanism, radii[0]), _pass_chance(mechanism, radii[1]))

    def scores(center: Array, radius: float) -> Scores:
        def run(runs: int, sampler: Sampler) -> Array:
            values = np.broadcast_to(center, (runs, len(shift)))
            released, withheld = mechanism.release(values, np.full(runs, radius), sampler=sampler)
            if isinstance(mechanism, LaplaceTestRelease):
                vector = _vector_scores(mechanism.inner, released, shift)
            else:
                vector = (Norm.L1.of(released - shift) - Norm.L1.of(released)) / mechanism.scale
            return _tested_scores(vector, withheld, chances)

        return run

    first, second = scores(np.zeros(len(shift)), radii[0]), scores(shift, radii[1])
    return AuditCase(
        f"{mechanism.name}, radii {radii[0]:g} and {radii[1]:g}", epsilon, delta, first, second
    )


def logits_case(
    mechanism: SoftmaxRelease | NoisyMaxRelease, *, lead: float, change: float, epsilon: float
) -> AuditCase:
    """The first logit ahead of equal others by ``lead``, against the same with ``change`` less
    (a sensitivity, if honest).
    """
    pair = np.zeros((2, mechanism.classes))
    pair[:, 0] = lead, lead - change
    logs = np.log(mechanism.probabilities(pair))
    return _logits_case(mechanism, epsilon, logs[0] - logs[1], pair)


def stability_response_case(
    mechanism: StabilityResponse,
    *,
    labels: tuple[int, int],
    levels: tuple[int, int],
    epsilon: float,
) -> AuditCase:
    """Neighbours whose certified labels and levels are given."""
    logs = [
        _response_logs(mechanism, label, level) for label, level in zip(labels, levels, strict=True)
    ]

    def answers(label: int, level: int) -> Callable[[int, Sampler], npt.NDArray[np.int64]]:
        return lambda runs, sampler: mechanism.release(
            np.full(runs, label), np.full(runs, level), sampler=sampler
        )

    name = f"{mechanism.name}, labels {labels}, levels {levels}"
    return _label_case(
        name,
        epsilon,
        logs[0] - logs[1],
        answers(labels[0], levels[0]),
        answers(labels[1], levels[1]),
    )


def stability_release_case(
    mechanism: StabilityRelease, *, margins: tuple[float, float], epsilon: float
) -> AuditCase:
    """Two labels in front; the first leads by ``margins`` (negative: the second leads)."""
    pair = np.full((2, mechanism.classes), -10.0 * mechanism.sensitivity)
    pair[:, 1] = 0.0
    pair[:, 0] = margins
    levels = mechanism.levels(pair)
    logs = [
        _response_logs(mechanism.response, int(pair[i].argmax()), int(levels[i])) for i in (0, 1)
    ]
    return _logits_case(mechanism, epsilon, logs[0] - logs[1], pair)


def _logits_case(
    mechanism: SoftmaxRelease | NoisyMaxRelease | StabilityRelease,
    epsilon: float,
    log_ratio: Array,
    pair: Array,
) -> AuditCase:
    """Neighbours with the logits ``pair``, shape (2, classes)."""

    def answers(logits: Array) -> Callable[[int, Sampler], npt.NDArray[np.int64]]:
        return lambda runs, sampler: mechanism.release(
            np.broadcast_to(logits, (runs, mechanism.classes)), sampler=sampler
        )

    return _label_case(mechanism.name, epsilon, log_ratio, answers(pair[0]), answers(pair[1]))


def _label_case(
    name: str,
    epsilon: float,
    log_ratio: Array,
    first: Callable[[int, Sampler], npt.NDArray[np.int64]],
    second: Callable[[int, Sampler], npt.NDArray[np.int64]],
) -> AuditCase:
    return AuditCase(
        name,
        epsilon,
        0.0,
        lambda runs, sampler: log_ratio[first(runs, sampler)],
        lambda runs, sampler: log_ratio[second(runs, sampler)],
    )


def _response_logs(mechanism: StabilityResponse, label: int, level: int) -> Array:
    capped = min(level, mechanism.max_level)
    logs = np.full(mechanism.classes, math.log(mechanism.wrong_probabilities[capped]))
    logs[label] = math.log(mechanism.right_probabilities[capped])
    return logs


def _vector_scores(additive: AdditiveMechanism, answers: Array, shift: Array) -> Array:
    """Log-likelihood ratio of 0 against ``shift``, for each row of ``answers`` (shape (n, m);
    NaN rows give NaN).
    """
    if isinstance(additive, GaussianMechanism):
        return np.asarray((0.5 * shift @ shift - answers @ shift) / additive.scale**2)
    return np.asarray(
        (additive.norm.of(answers - shift) - additive.norm.of(answers)) / additive.scale
    )


def _tested_scores(
    vector_scores: Array, withheld: npt.NDArray[np.bool_], chances: tuple[float, float]
) -> Array:
    """Score of an answer that may be withheld, from the score of its vector and both neighbours'
    chances to pass.
    """
    passing = _log_ratio(chances[0], chances[1])
    return np.where(
        withheld, _log_ratio(1.0 - chances[0], 1.0 - chances[1]), passing + vector_scores
    )


def _log_ratio(first: float, second: float) -> float:
    if min(first, second) <= 0.0:
        return _CERTAIN * float(np.sign(first - second))
    return math.log(first / second)


def _pass_chance(mechanism: LaplaceTestRelease | PublishedPosthoc, radius: float) -> float:
    """Chance that the Laplace test passes at a stability radius."""
    if isinstance(mechanism, LaplaceTestRelease):
        unit = (mechanism.radius + mechanism.tolerance) / mechanism.epsilon_test
        lead = max(0.0, radius - mechanism.radius) - mechanism.threshold
    else:
        unit = (
            mechanism.radius if mechanism.test_scale == "R / epsilon" else 1.0
        ) / mechanism.stated_epsilon
        lead = float(mechanism.tested_stability([radius])[0]) + unit * math.log(
            mechanism.stated_delta
        )
    tail = 0.5 * math.exp(-abs(lead) / unit)
    return 1.0 - tail if lead > 0 else tail
