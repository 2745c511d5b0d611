"""Ballots of records beside public models: what a record still has to say of its label."""

from __future__ import annotations

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.grids.whole_numbers import softmax

BALLOT = 2.0**10
"""Grid steps between a record's largest and least vote."""

_BELOW = 1.0 - 2.0**-40


def residual_spreads(offsets: Array, codes: Integers) -> Array:
    """Return how far a record's residual e_y - p reaches, from its largest to its least entry.

    It is in (0, 2): 1 - p_y and the largest p of another label.

    Args:
        offsets: shape (n, classes), log probabilities by public models, up to a constant.
        codes: shape (n,), places of labels.
    """
    others = _others(offsets, codes)
    return np.asarray(_total(others) + others.max(axis=1))


def residual_ballots(offsets: Array, codes: Integers) -> Array:
    """Return residuals e_y - p over their spread, whole numbers of steps of 1 / ``BALLOT``.

    **Guarantee.** The largest entry, that of the record's label, is exactly ``BALLOT`` above the
    least. Less its mean a row is no longer than ``BALLOT`` sqrt(1 - 1/K), the length of a whole
    vote for one of K labels. Each row follows from that record and public models, to the last bit.

    *Why the length.* Let a be the entry of the label and -b_l the others, in units of ``BALLOT``.
    Rounding only shortens the b_l, and a is set to 1 - max b, so that b_l >= 0 and t = a - sum b
    >= 0. With max b = 1 - a the squares add up to at most a^2 + (1 - a)(a - t) = a - t (1 - a), and
    t^2/K is taken off with the mean. From sum b <= (K - 1)(1 - a) follows a <= 1 - 1/K + t/K. Put
    into a (1 + t) - t - t^2/K, which grows with a, that is 1 - 1/K.

    Args:
        offsets, codes: arguments of ``residual_spreads``.

    Example:
        >>> residual_ballots(np.log([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1])).tolist()
        [[513.0, -511.0], [-511.0, 513.0]]
    """
    others = _others(offsets, codes)
    spread = _total(others) + others.max(axis=1)
    found = -np.trunc(others * (_BELOW * BALLOT / spread)[:, None])
    found[np.arange(len(codes)), codes] = BALLOT + found.min(axis=1)
    return np.asarray(found)


def _others(offsets: Array, codes: Integers) -> Array:
    """Return the probabilities of all labels but the record's own, whose place holds 0."""
    shares = softmax(offsets)
    shares[np.arange(len(codes)), codes] = 0.0
    return shares


def _total(shares: Array) -> Array:
    # bit-exact: labels in their order, whatever the number of rows.
    total = np.full(len(shares), 2.0**-60)  # so that no spread is 0
    for column in shares.T:
        total += column
    return total
