"""Worst adjacent pairs of Private-kNN steps, sampling included: the record's own coin is part of
the run.
"""

from __future__ import annotations

import math

import numpy as np

from reticent.audit.worst_case import AuditCase
from reticent.core.arrays import Array, Integers
from reticent.mechanisms import NoisyArgmax, NoisyScreening
from reticent.noise import Sampler
from reticent.noise.coins import coins

_REACH = 12.0


def noisy_screening_case(
    mechanism: NoisyScreening, *, votes: int, epsilon: float, delta: float
) -> AuditCase:
    """A largest vote of ``votes``, against one more wherever the record is sampled.

    Args:
        mechanism: the screening, whose sampling probability is tossed for the record.
        votes: the largest vote without the record, 0 to neighbours - 1.
        epsilon, delta: the claim.
    """
    chances = [_pass_chance(mechanism, votes + more) for more in (0, 1)]
    rate = mechanism.sampling_probability
    mixed = (1 - rate) * chances[0] + rate * chances[1]
    logs = np.array([math.log((1 - mixed) / (1 - chances[0])), math.log(mixed / chances[0])])

    def run(with_record: bool, runs: int, sampler: Sampler) -> Array:
        counts = np.full(runs, votes, dtype=np.int64)
        if with_record:
            counts += coins(runs, probability=rate, sampler=sampler)
        return np.asarray(logs[mechanism.release(counts, sampler=sampler).astype(np.int64)])

    name = f"{mechanism.name}, {votes} votes"
    return AuditCase(
        name, epsilon, delta, lambda n, s: run(True, n, s), lambda n, s: run(False, n, s)
    )


def noisy_argmax_case(
    mechanism: NoisyArgmax, *, votes: Integers, epsilon: float, delta: float
) -> AuditCase:
    """``votes``, against one vote moved from the second class to the first wherever the record is
    sampled.

    Args:
        mechanism: the vote, of two classes, so that the distribution of the label has a closed
            form.
        votes: shape (2,), without the record; the second at least 1.
        epsilon, delta: the claim.
    """
    moved = votes + np.array([1, -1])
    chances = [_first_wins(mechanism, counts) for counts in (votes, moved)]
    rate = mechanism.sampling_probability
    mixed = (1 - rate) * chances[0] + rate * chances[1]
    logs = np.array([math.log(mixed / chances[0]), math.log((1 - mixed) / (1 - chances[0]))])

    def run(with_record: bool, runs: int, sampler: Sampler) -> Array:
        here = np.tile(votes, (runs, 1))
        if with_record:
            here = np.where(coins(runs, probability=rate, sampler=sampler)[:, None], moved, here)
        return np.asarray(logs[mechanism.release(here, sampler=sampler)])

    name = f"{mechanism.name}, {votes.tolist()} votes"
    return AuditCase(
        name, epsilon, delta, lambda n, s: run(True, n, s), lambda n, s: run(False, n, s)
    )


def _noise_distribution(sigma: float) -> tuple[Integers, Array]:
    reach = math.ceil(_REACH * sigma)
    values = np.arange(-reach, reach + 1)
    distribution = np.exp(-(values**2) / (2 * sigma**2))
    return values, distribution / distribution.sum()


def _pass_chance(mechanism: NoisyScreening, votes: int) -> float:
    values, distribution = _noise_distribution(mechanism.sigma)
    return float(distribution[votes + values >= mechanism.threshold].sum())


def _first_wins(mechanism: NoisyArgmax, votes: Integers) -> float:
    values, distribution = _noise_distribution(mechanism.sigma)
    difference = np.convolve(distribution, distribution)
    gaps = np.arange(2 * values[0], 2 * values[-1] + 1)
    return float(difference[gaps >= votes[1] - votes[0]].sum())
