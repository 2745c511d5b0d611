"""The worst neighbours of noisy sums: two totals as far apart as their bounds allow, in every
sum.
"""

from __future__ import annotations

import numpy as np

from reticent.audit.worst_case import AuditCase
from reticent.core.arrays import Array
from reticent.mechanisms import NoisySums
from reticent.noise import Sampler


def noisy_sums_case(
    mechanism: NoisySums, *, epsilon: float, delta: float, moved: float = 1.0
) -> AuditCase:
    """All sums of ``mechanism`` on zeros, against totals that are ``distances`` away, along one
    coordinate of every block.

    Args:
        mechanism: runs for real, all its sums.
        epsilon, delta: the claim.
        moved: how far the totals are apart, in ``distances``; above 1 for a record whose part is
            longer than its bound.
    """
    shifts = [int(np.floor(moved * distance)) for distance in mechanism.distances]

    def run(with_record: bool, runs: int, sampler: Sampler) -> Array:
        scores = np.zeros(runs)
        for place, shift in enumerate(shifts):
            sigma, width = mechanism.sigmas[place], mechanism.blocks[place].width
            totals = np.zeros((runs * mechanism.sums, width))
            totals[:, 0] = shift * with_record
            released = mechanism.noisy_rows(totals, sampler=sampler, block=place)
            seen = released[:, 0].reshape(runs, mechanism.sums).astype(np.float64)
            scores += shift * (seen - 0.5 * shift).sum(axis=1) / sigma**2
        return scores

    name = f"{mechanism.name}, {mechanism.sums} of {len(mechanism.blocks)} block(s)"
    return AuditCase(
        name, epsilon, delta, lambda n, s: run(True, n, s), lambda n, s: run(False, n, s)
    )
