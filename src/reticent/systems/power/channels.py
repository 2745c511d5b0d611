"""Channels between any two nodes as tables: randomised response, and whole shares of any table."""

from __future__ import annotations

import math

import numpy as np

from reticent.core.arrays import Array
from reticent.grids.shares import WHOLE, Shares, excess
from reticent.mechanisms import AnyTwo

_LARGEST_EPSILON = 22.0  # shares are multiples of 2^-32, which is e^-22.18
_FIRST_MIX = 2.0**-28


def randomised_response(bins: int, *, epsilon: float) -> Array:
    """The bin itself with probability e^epsilon / (e^epsilon + bins - 1), each other one alike."""
    lie = 1.0 / (math.exp(min(epsilon, _LARGEST_EPSILON)) + bins - 1)
    table = np.full((bins, bins), lie)
    np.fill_diagonal(table, 1.0 - (bins - 1) * lie)
    return table


def whole_shares(table: Array, *, epsilon: float) -> Shares:
    """``table`` in whole multiples of 2^-32 that meet the condition of privacy exactly, shape
    (outputs, bins), as ``FiniteChannel`` takes them.

    Rounding breaks a factor that is met with equality, so the table is mixed with the uniform one,
    with the smallest power of two as its weight for which the exact check passes; weight 1 always
    does.

    Args:
        table: shape (bins, outputs), rows sum to 1.
        epsilon: above 0.
    """
    bins, weight = AnyTwo(len(table)), _FIRST_MIX
    while True:
        mixed = (1.0 - weight) * table + weight / table.shape[1]
        shares = np.maximum(np.floor(mixed * WHOLE).astype(np.int64), 1)
        # What is missing is at most a unit for each output: it goes to the likeliest one.
        rows = np.arange(len(shares))
        shares[rows, mixed.argmax(axis=1)] += WHOLE - shares.sum(axis=1)
        whole = shares.T.astype(np.uint32)
        if weight >= 1.0 or not excess(whole, whole, lattice=bins, epsilon=epsilon):
            return np.asarray(whole)
        weight = min(2.0 * weight, 1.0)
