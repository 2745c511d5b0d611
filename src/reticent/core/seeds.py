"""The source of *training*'s randomness: a given seed or the operating system, never numpy's global
generator.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from reticent.core.errors import InvalidParameter

_LARGEST = 2**32 - 1


def training_generator(random_state: Any) -> np.random.RandomState:
    """Return a generator for starting weights, order and splits.

    ``None`` means fresh bits of the operating system. scikit-learn reads it as numpy's *global*
    generator, whose state may follow from private records. After ``np.random.rand(len(X))`` it
    tells how many records there were, so neighbouring data sets would start from different weights.
    For the same reason the global generator is refused if it is passed by name.

    Args:
        random_state: an integer from 0 to 2^32 - 1, a ``numpy.random.RandomState`` of the caller's
            own, or None.

    Raises:
        InvalidParameter: anything else, or the global generator.

    Example:
        >>> training_generator(7).randint(1000) == training_generator(7).randint(1000)
        True
    """
    if random_state is None:
        return np.random.RandomState(np.random.MT19937(np.random.SeedSequence()))
    # numpy gives its global generator no public name.
    if random_state is np.random or random_state is getattr(np.random.mtrand, "_rand", None):
        raise InvalidParameter(
            "random_state: numpy's global generator may depend on private records; expected an "
            "integer, a RandomState of your "
            "own, or None for the operating system"
        )
    if isinstance(random_state, np.random.RandomState):
        return random_state
    is_integer = isinstance(random_state, numbers.Integral) and not isinstance(
        random_state, (bool, np.bool_)
    )
    if not is_integer or not 0 <= random_state <= _LARGEST:
        raise InvalidParameter(
            f"random_state: expected an integer from 0 to {_LARGEST}, a numpy RandomState or None, "
            f"got {type(random_state).__name__}"
        )
    return np.random.RandomState(int(random_state))


def training_seed(random_state: Any) -> int:
    """Return one seed from 0 to 2^31 - 2 from ``training_generator``.

    Raises:
        InvalidParameter: ``random_state`` is refused by ``training_generator``.

    Example:
        >>> training_seed(7) == training_seed(7)
        True
    """
    return int(training_generator(random_state).randint(2**31 - 1))
