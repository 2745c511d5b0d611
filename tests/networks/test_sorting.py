"""The layer that sorts pairs does so, and is built from layers that can be certified."""

from __future__ import annotations

import numpy as np

from reticent.networks import Activation, ActivationKind, Affine, Residual
from reticent.networks.sorting import is_pair_sort, pair_sort


def test_pairs_are_sorted() -> None:
    branch = pair_sort(4).branch
    rows = np.array([[1.0, 3.0, 5.0, 2.0]])
    moved = rows + branch[2].forward(branch[1].kind.apply(branch[0].forward(rows)))
    assert moved.tolist() == [[3.0, 1.0, 5.0, 2.0]]


def test_only_a_sort_of_pairs_is_taken_for_one() -> None:
    layer = pair_sort(6)
    assert is_pair_sort(layer)
    first, relu, last = layer.branch
    bent = last.weight.copy()
    bent[0, 0] += 2.0**-52
    assert not is_pair_sort(Residual((first, relu, Affine(bent, last.bias))))
    assert not is_pair_sort(Residual((first, relu, Affine(last.weight, last.bias + 1.0))))
    assert not is_pair_sort(Residual((first, Activation(ActivationKind.TANH), last)))
    assert not is_pair_sort(Residual((first, relu)))
    assert not is_pair_sort(first)
