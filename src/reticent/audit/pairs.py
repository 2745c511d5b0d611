"""Two neighbours that a fitted system is audited on, as its mechanism sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.noise import Sampler

Answers = tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]
Draw = Callable[[int, Sampler], Answers]


@dataclass(frozen=True)
class Pair:
    """Two neighbours, as the mechanism sees them.

    Attributes:
        name: which neighbours, in words without private values.
        first, second: draws that many answers about one of them: values, and which are withheld.
        values: released values without noise of either, where answers are vectors, shape (2, m);
            None where answers are labels.
    """

    name: str
    first: Draw
    second: Draw
    values: Array | None
