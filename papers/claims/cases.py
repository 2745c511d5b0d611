"""The worst known pair of neighbours of each mechanism that no fitted estimator's audit runs by
itself.
"""

from __future__ import annotations

import numpy as np

from reticent.audit.cases import TO_GRID, AuditCase, case_of, label_outputs, sides, vector_outputs
from reticent.core.arrays import Array, Integers
from reticent.core.norms import Norm
from reticent.mechanisms import (
    NoisyArgmax,
    NoisyMaxRelease,
    NoisyScreening,
    NoisySums,
    SignedDistanceRelease,
    StabilityRelease,
    StabilityResponse,
)
from reticent.noise import Sampler
from reticent.noise.coins import coins
from reticent.published.certified import BinaryResponse
from reticent.published.posthoc import PublishedPosthoc


def published_test_case(
    mechanism: PublishedPosthoc,
    *,
    radii: tuple[float, float],
    shift: Array,
    epsilon: float,
    delta: float,
) -> AuditCase:
    """Test neighbours with stability radii ``radii``, whose values are 0 and ``shift`` (shape
    (m,)).
    """
    centers = (np.zeros(len(shift)), shift)

    def density(seen: Array) -> Array:
        return -Norm.L1.between(seen, np.stack(centers)) / mechanism.scale

    def answers(side: tuple[Array, float], runs: int, sampler: Sampler) -> Array:
        values = np.broadcast_to(side[0], (runs, len(shift)))
        released = mechanism.release(values, np.full(runs, side[1]), sampler=sampler)
        return vector_outputs(*released, density=density)

    name = f"{mechanism.name}, radii {radii[0]:g} and {radii[1]:g}"
    return case_of(name, epsilon, delta, answers, sides(centers, radii))


def logits_case(
    mechanism: NoisyMaxRelease, *, lead: float, change: float, epsilon: float
) -> AuditCase:
    """Test the first logit ahead of equal others by ``lead``, against the same with ``change``
    less.

    An honest ``change`` is a sensitivity.
    """
    pair = np.zeros((2, mechanism.classes))
    pair[:, 0] = lead, lead - change
    return _logits_case(mechanism, epsilon, pair)


def stability_release_case(
    mechanism: StabilityRelease, *, margins: tuple[float, float], epsilon: float
) -> AuditCase:
    """Test two labels in front. The first leads by ``margins`` (negative: the second leads)."""
    pair = np.full((2, mechanism.classes), -10.0 * mechanism.sensitivity)
    pair[:, 1] = 0.0
    pair[:, 0] = margins
    return _logits_case(mechanism, epsilon, pair)


def _logits_case(
    mechanism: NoisyMaxRelease | StabilityRelease, epsilon: float, pair: Array
) -> AuditCase:
    """Test neighbours with the logits ``pair``, shape (2, classes)."""

    def answers(logits: Array, runs: int, sampler: Sampler) -> Array:
        rows = np.broadcast_to(logits, (runs, mechanism.classes))
        return label_outputs(mechanism.release(rows, sampler=sampler))

    return case_of(mechanism.name, epsilon, 0.0, answers, (pair[0], pair[1]))


def response_case(
    mechanism: StabilityResponse | BinaryResponse,
    *,
    labels: tuple[int, int],
    levels: tuple[int, int],
    epsilon: float,
) -> AuditCase:
    """Test neighbours whose certified labels and levels, or stable distances, are given."""

    def answers(side: tuple[int, int], runs: int, sampler: Sampler) -> Array:
        given = np.full(runs, side[0]), np.full(runs, side[1])
        return label_outputs(mechanism.release(*given, sampler=sampler))

    name = f"{mechanism.name}, labels {labels}, levels {levels}"
    return case_of(name, epsilon, 0.0, answers, sides(labels, levels))


def signed_distance_case(
    mechanism: SignedDistanceRelease,
    *,
    labels: tuple[int, int],
    levels: tuple[int, int],
    answers: int,
    epsilon: float,
    delta: float,
) -> AuditCase:
    """Test neighbours whose labels and stable distances are given.

    They are the same for every one of several answers. These are seen together: how often each of
    the two labels is named.
    """

    def run(side: tuple[int, int], runs: int, sampler: Sampler) -> Array:
        given = np.full(runs * answers, side[0]), np.full(runs * answers, side[1])
        released = mechanism.release(*given, sampler=sampler).reshape(runs, answers)
        return np.stack([(released == label).sum(axis=1) for label in sorted(set(labels))], axis=1)

    name = f"{mechanism.name}, labels {labels}, distances {levels}, {answers} answers"
    return case_of(name, epsilon, delta, run, sides(labels, levels))


def noisy_screening_case(
    mechanism: NoisyScreening, *, votes: int, epsilon: float, delta: float
) -> AuditCase:
    """Test a largest vote of ``votes`` (0 to neighbours - 1), against one more where the record is
    sampled.

    The record's own coin is part of the run.
    """

    def run(with_record: bool, runs: int, sampler: Sampler) -> Array:
        counts = np.full(runs, votes, dtype=np.int64)
        if with_record:
            rate = mechanism.sampling_probability
            counts += coins(runs, probability=rate, sampler=sampler)
        return label_outputs(mechanism.release(counts, sampler=sampler))

    return case_of(f"{mechanism.name}, {votes} votes", epsilon, delta, run, (True, False))


def noisy_argmax_case(
    mechanism: NoisyArgmax, *, votes: Integers, epsilon: float, delta: float
) -> AuditCase:
    """Test ``votes``, shape (classes,), against one vote moved from the second class to the first.

    It is moved wherever the record is sampled.
    """
    moved = votes.copy()
    moved[:2] += np.array([1, -1])

    def run(with_record: bool, runs: int, sampler: Sampler) -> Array:
        here = np.tile(votes, (runs, 1))
        if with_record:
            rate = mechanism.sampling_probability
            here = np.where(coins(runs, probability=rate, sampler=sampler)[:, None], moved, here)
        return label_outputs(mechanism.release(here, sampler=sampler))

    return case_of(f"{mechanism.name}, {votes.tolist()} votes", epsilon, delta, run, (True, False))


def noisy_sums_case(
    mechanism: NoisySums, *, epsilon: float, delta: float, moved: float = 1.0
) -> AuditCase:
    """Test all sums of ``mechanism`` on zeros, against totals that are ``distances`` away.

    They move along one coordinate of every block.

    Args:
        mechanism: the mechanism that runs for real, all its sums.
        epsilon, delta: the claim.
        moved: distance of the totals, in ``distances``, above 1 for a record whose part is longer
            than its bound.
    """
    shifts = [int(np.floor(moved * distance)) for distance in mechanism.distances]

    def run(with_record: bool, runs: int, sampler: Sampler) -> Array:
        ratios = np.zeros(runs)
        for place, shift in enumerate(shifts):
            sigma, width = mechanism.sigmas[place], mechanism.blocks[place].width
            totals = np.zeros((runs * mechanism.sums, width))
            totals[:, 0] = shift * with_record
            released = mechanism.noisy_rows(totals, sampler=sampler, block=place)
            seen = released[:, 0].reshape(runs, mechanism.sums).astype(np.float64)
            ratios += shift * (seen - 0.5 * shift).sum(axis=1) / sigma**2
        return np.rint(ratios * TO_GRID) / TO_GRID

    name = f"{mechanism.name}, {mechanism.sums} of {len(mechanism.blocks)} block(s)"
    return case_of(name, epsilon, delta, run, (True, False))
