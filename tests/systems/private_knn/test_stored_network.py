"""A network that comes back from its sizes and weights, and sizes that are not those of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.core.errors import CorruptBundle, InvalidParameter
from reticent.systems.private_knn.stored_network import network_parts, stored_network
from reticent.training.students import Student


@pytest.fixture
def network() -> Student:
    torch.manual_seed(0)
    return Student((1, 8, 12), 3, channels=(4, 6), width=10).eval()


def test_it_comes_back_as_it_was(network: Student) -> None:
    sizes, arrays = network_parts(network)
    assert sizes == {"image_shape": [1, 8, 12], "channels": [4, 6], "width": 10}
    rows = np.random.default_rng(0).random((5, 96))
    back = stored_network(sizes, 3, arrays)
    np.testing.assert_array_equal(back.probabilities(rows), network.probabilities(rows))
    assert not back.training


@pytest.mark.parametrize(
    "changes", [{"width": 10**12}, {"channels": [4, 10**9]}, {"image_shape": [1, 2**20, 2**20]}]
)
def test_sizes_of_other_weights_are_refused_without_memory(network: Student, changes) -> None:
    sizes, arrays = network_parts(network)
    with pytest.raises(RuntimeError, match=r"size mismatch|overflow"):
        stored_network({**sizes, **changes}, 3, arrays)


def test_sizes_that_are_none_and_other_numbers_are_refused(network: Student) -> None:
    sizes, arrays = network_parts(network)
    with pytest.raises(InvalidParameter, match="width=0"):
        stored_network({**sizes, "width": 0}, 3, arrays)
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    with pytest.raises(CorruptBundle, match="32 bits"):
        stored_network(sizes, 3, wide)
