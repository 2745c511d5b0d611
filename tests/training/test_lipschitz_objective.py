"""The differentiable bound: an upper bound on every sampled quotient, equal to brute force, and
differentiable.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from reticent.core import Norm
from reticent.training.lipschitz_objective import (
    SPREAD,
    input_directions,
    lipschitz_bound,
    output_functionals,
)
from reticent.training.networks import relu_network

OUTPUTS = [Norm.L1, Norm.LINF, Norm.L2, SPREAD]


def network(sizes: list[int], seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return relu_network(sizes)


def bound_of(module: nn.Sequential, output: Norm | str, input_norm: Norm = Norm.LINF) -> float:
    functionals = None if output is Norm.L2 else output_functionals(module[-1].out_features, output)
    return lipschitz_bound(
        module, input_directions(module[0].in_features, input_norm), functionals
    ).item()


def measure(differences: np.ndarray, output: Norm | str) -> np.ndarray:
    if output == SPREAD:
        return np.ptp(differences, axis=-1)
    return Norm(output).of(differences)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("input_norm", [Norm.LINF, Norm.L1])
@pytest.mark.parametrize("sizes", [[4, 12, 3], [4, 8, 8, 3]])
def test_no_sampled_quotient_exceeds_it(
    output: Norm | str, input_norm: Norm, sizes: list[int]
) -> None:
    module = network(sizes)
    random = np.random.default_rng(0)
    first = random.normal(size=(20000, 4), scale=2.0)
    second = first + random.choice([-0.3, 0.0, 0.3], size=first.shape)
    keep = np.abs(first - second).max(axis=1) > 0
    with torch.no_grad():
        values = [
            module(torch.from_numpy(points[keep]).float()).double().numpy()
            for points in (first, second)
        ]
    quotients = measure(values[0] - values[1], output) / input_norm.of(first[keep] - second[keep])
    bound = bound_of(module, output, input_norm)
    assert quotients.max() <= bound * (1 + 1e-4)
    assert bound <= 4 * quotients.max()


@pytest.mark.parametrize("output", [Norm.L1, Norm.LINF, SPREAD])
def test_one_hidden_layer_equals_brute_force(output: Norm | str) -> None:
    module = network([3, 6, 3], seed=4)
    first, last = (module[index].weight.detach().numpy().astype(np.float64) for index in (0, 2))
    rows = {
        Norm.L1: list(itertools.product([-1, 1], repeat=3)),
        Norm.LINF: [*np.eye(3), *-np.eye(3)],
        SPREAD: [np.eye(3)[i] - np.eye(3)[j] for i in range(3) for j in range(3)],
    }[output]
    expected = max(
        np.maximum(0, (np.array(row) @ last) * (first @ np.array(sign))).sum()
        for row in rows
        for sign in itertools.product([-1, 1], repeat=3)
    )
    assert bound_of(module, output) == pytest.approx(expected, rel=1e-5)
