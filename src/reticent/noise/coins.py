"""Many exact coins of one public probability, for the inclusion decisions of a Poisson sample, at a
sixteenth of the usual work.
"""

from __future__ import annotations

import math

import numpy as np

from reticent.core.arrays import Booleans
from reticent.core.checks import positive
from reticent.core.errors import InvalidParameter
from reticent.noise.samplers import Sampler, Shape

_HEAD_BITS = 16


def coins(shape: Shape, *, probability: float, sampler: Sampler) -> Booleans:
    """Return independent coins that show True with *exactly* the float64 ``probability``.

    A uniform real lies below p exactly if its first 16 bits, read as an integer, lie below
    floor(2^16 p), or equal it and the rest of the real lies below the rest of p. The second case
    has probability 2^-16, and only there ``Sampler.bernoulli`` looks at more bits. Multiplying by
    2^16 and splitting off the whole part are exact in float64.

    Args:
        shape: shape of the result.
        probability: in (0, 1], public. Few coins need more bits, and their number would show it to
            an observer who counts words.
        sampler: source of randomness.

    Raises:
        InvalidParameter: ``probability`` out of its range.

    Edge cases: probability 1 draws nothing. An empty shape gives an empty array.

    Example:
        >>> from reticent.noise import SecureSampler
        >>> bool(coins(5, probability=1.0, sampler=SecureSampler()).all())
        True
    """
    rate = positive(probability, name="probability")
    if rate > 1:
        raise InvalidParameter(f"probability={probability!r}: expected a number in (0, 1]")
    if rate == 1:
        return np.ones(shape, dtype=np.bool_)
    size = int(np.prod(shape))
    scaled = math.ldexp(rate, _HEAD_BITS)
    whole = math.floor(scaled)
    per_word = 64 // _HEAD_BITS
    # bit-exact: seeded coins take these words first, then the words of undecided coins.
    heads = sampler.words(-(-size // per_word)).view(np.uint16)[:size]
    heads_up = heads < np.uint16(whole)
    undecided = np.flatnonzero(heads == np.uint16(whole))
    heads_up[undecided] = sampler.bernoulli(np.full(undecided.size, scaled - whole))
    return np.asarray(heads_up.reshape(shape))
