"""Sums over records of weight times label, exact, each unit's part cut to its bound.

Every sum of this package is over records of phi (x) r: a vector that depends on the record and on
public things, times a vector of its label. Both are whole numbers of bounded length, so that their
product has the product of the bounds. With one-hot labels less a constant, K e_y - 1, the second
length is sqrt(K (K - 1)). Plain one-hot labels on the same scale would have K.
"""

from __future__ import annotations

import math

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidInput
from reticent.grids.whole_numbers import EXACT, clipped, exact_product
from reticent.systems.votes.voters import ReadVoters, Voters

VOTE = 2.0**20
"""Grid steps in one vote: weights are at most that."""

_AT_ONCE = 2**22
"""Numbers that are held at once where persons' sums are cut."""


def centred_length(classes: int) -> float:
    """Return the length of K e_y - 1, rounded up: K times sqrt(1 - 1/K).

    Example:
        >>> centred_length(2) >= 2**0.5
        True
    """
    return math.nextafter(math.sqrt(classes * (classes - 1)), math.inf)


def most_records(voters: Voters | ReadVoters, *bounds: float) -> int:
    """Return how many records sums are exact for. It is called before any charge.

    The refusal of more looks at the records, so that the guarantee is for data sets of at most so
    many. The number is public and stands on the card.

    Args:
        voters: the records.
        bounds: bounds of what one record adds to a sum, in grid steps.

    Raises:
        InvalidInput: there are more, and a sum of all of them could leave what doubles hold
            exactly.
    """
    bound = max(bounds)
    most = int(EXACT / 2 / bound)
    most -= most * bound > EXACT / 2  # where the quotient was rounded up
    if len(voters) > most:
        raise InvalidInput(
            f"X: expected fewer records, got {len(voters)}; sums of more than {most} are not exact"
        )
    return most


def outer_sum(voters: Voters, left: Array, right: Array, *, lengths: tuple[float, float]) -> Array:
    """Return the sum over units of left_i (x) right_i, shape (m, k).

    Each unit's part has an l2 norm of at most the product of ``lengths``.

    Args:
        voters: the records.
        left: shape (n, m), whole numbers of an l2 norm of at most ``lengths[0]``.
        right: shape (n, k), whole numbers of an l2 norm of at most ``lengths[1]``.
        lengths: public lengths.
    """
    if voters.starts is None:
        bound = len(voters) * lengths[0] * lengths[1]
        return exact_product(left.T, right, bound=bound)
    total = np.zeros((left.shape[1], right.shape[1]))
    for records, starts in person_blocks(voters, left.shape[1] * right.shape[1]):
        if len(starts) == 1:  # whose records may be more than their products would fit memory
            bound = (records.stop - records.start) * lengths[0] * lengths[1]
            alone = exact_product(left[records].T, right[records], bound=bound)
            persons = alone.reshape(1, -1)
        else:
            parts = left[records][:, :, None] * right[records][:, None, :]
            persons = np.add.reduceat(parts.reshape(len(parts), -1), starts, axis=0)
        total += clipped(persons, lengths[0] * lengths[1]).sum(axis=0).reshape(total.shape)
    return total


def unit_sum(voters: Voters, parts: Array, *, bound: float) -> Array:
    """Return the sum over units of what each adds, every unit's part cut to a length.

    A unit is a record, or a person whose records are protected together. With this a sum of any
    vectors has the sensitivity ``bound``: for models of your own.

    Args:
        voters: the records.
        parts: shape (n, m), whole numbers, each row from its own record and public things alone.
        bound: the l2 length to which a unit's part is cut, above 0.

    Returns:
        Shape (m,), whole numbers.

    Example:
        >>> records = Voters(np.zeros((3, 1)), np.zeros(3, dtype=np.int64), None)
        >>> unit_sum(records, np.array([[3.0, 4.0], [3.0, 4.0], [30.0, 40.0]]), bound=5.0).tolist()
        [8.0, 11.0]

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, sensitivity.

    See Also:
        reticent.mechanisms.NoisySums: the noise that such a sum is given.
    """
    units = parts
    if voters.starts is not None and len(voters.starts):
        units = np.add.reduceat(parts, voters.starts, axis=0)
    return np.asarray(clipped(units, bound).sum(axis=0))


def one_hot(codes: Integers, classes: int) -> Array:
    """Return e_y for every record, shape (n, classes): its whole vote is for its label."""
    found = np.zeros((len(codes), classes))
    found[np.arange(len(codes)), codes] = 1.0
    return found


def label_sums(voters: Voters, weights: Array, ballots: Array) -> Array:
    """Return for each query the votes by label, shape (q, classes), without cutting, for records
    only.

    Args:
        voters: the records.
        weights: shape (n, q), whole numbers.
        ballots: shape (n, classes), whole numbers, which weights are multiplied by. No product of
            the two exceeds ``VOTE`` in magnitude.
    """
    return exact_product(weights.T, ballots, bound=len(voters) * VOTE)


def person_label_sums(voters: Voters, weights: Array, ballots: Array) -> Array:
    """Return every person's votes by label, shape (persons, q, classes), as ``label_sums`` does."""
    assert voters.starts is not None
    found = np.empty((len(voters.starts), weights.shape[1], ballots.shape[1]))
    for label, share in enumerate(ballots.T):
        found[:, :, label] = np.add.reduceat(share[:, None] * weights, voters.starts, axis=0)
    return found


def person_blocks(voters: Voters, width: int) -> list[tuple[slice, Integers]]:
    """Return runs of whole persons, and where each person begins in its run."""
    assert voters.starts is not None
    ends = np.append(voters.starts[1:], len(voters))
    most = max(1, _AT_ONCE // width)
    blocks, first = [], 0
    while first < len(voters.starts):
        start = voters.starts[first]
        last = max(first + 1, int(np.searchsorted(ends, start + most, side="right")))
        blocks.append((slice(int(start), int(ends[last - 1])), voters.starts[first:last] - start))
        first = last
    return blocks
