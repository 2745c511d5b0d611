"""Training starts from a given seed or from the operating system, and from nothing that records
have touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.core.errors import InvalidParameter
from reticent.core.seeds import training_generator, training_seed


def test_without_a_seed_the_global_generator_is_neither_read_nor_advanced() -> None:
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        drawn.append(training_seed(None))
        assert np.random.randint(1000) == 684  # noqa: NPY002
    assert drawn[0] != drawn[1]  # equal with probability 2^-31


def test_a_seed_repeats_and_a_generator_of_the_caller_is_used() -> None:
    assert training_seed(3) == training_seed(np.int64(3)) == training_seed(np.random.RandomState(3))
    mine = np.random.RandomState(5)
    assert training_generator(mine) is mine


@pytest.mark.parametrize(
    "state",
    [np.random, np.random.mtrand._rand, True, -1, 2**32, 1.5, "seed", np.random.default_rng(0)],
)
def test_anything_else_is_refused(state: Any) -> None:
    with pytest.raises(InvalidParameter, match="random_state: "):
        training_generator(state)
