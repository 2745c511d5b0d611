"""Noise-aware training: constant 1, and better than the plain encoder under the same guarantee."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.core import Norm, operator_norm
from reticent.published.obfuscators import PublishedObfuscator
from reticent.training.heads import HeadConfig, train_head
from reticent.training.lipschitz_objective import (
    input_directions,
    lipschitz_bound,
    output_functionals,
)
from reticent.training.networks import TrainingConfig, relu_network
from reticent.training.noise import training_noise
from reticent.training.noise_aware import _start_at, train_noise_aware
from reticent.training.parts import PlannedRelease


def blobs(rows: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, rows)
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    noise = random.normal(size=(rows, 4))
    noise[:, :2] = 0.3 * noise[:, :2] + corners[labels]
    return noise.astype(np.float32), labels


def trained(points: np.ndarray, labels: np.ndarray, norm: Norm, epochs: int) -> torch.nn.Sequential:
    release = PlannedRelease(
        epsilon=2.0, delta=0.0, radius=0.4, input_norm=Norm.LINF, mechanism="", output=norm
    )
    config = TrainingConfig(epochs=epochs, batch_size=250, learning_rate=1e-2)
    return train_noise_aware(
        points, labels, release, config, outputs=2, hidden=(16,), first_noise=0.2
    )


def accuracy(network: torch.nn.Sequential, bound: float, norm: Norm) -> float:
    points, labels = blobs()
    fresh, truth = blobs(seed=1)
    scale = bound * 0.4 / 2.0
    outputs = network[-1].out_features
    with torch.no_grad():
        values, new = network(torch.from_numpy(points)), network(torch.from_numpy(fresh))
    head = train_head(
        values.numpy(),
        labels,
        HeadConfig(hidden=(32,), epochs=8, batch_size=200),
        noise=lambda batch: batch + scale * training_noise(len(batch), outputs, output_norm=norm),
    )
    torch.manual_seed(5)
    released = new + scale * training_noise(len(new), outputs, output_norm=norm)
    return float((head.predict(released.numpy()) == truth).mean())


@pytest.mark.parametrize("norm", list(Norm))
def test_the_constant_is_one(norm: Norm) -> None:
    points, labels = blobs(500)
    network = trained(points, labels, norm, 2)
    functionals = None if norm is Norm.L2 else output_functionals(2, norm)
    bound = lipschitz_bound(network, input_directions(4, Norm.LINF), functionals)
    assert bound.item() == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("hidden", [(), (6,), (5, 7)])
@pytest.mark.parametrize("norm", list(Norm))
def test_a_start_is_the_linear_map_at_the_bound_of_that_map(norm: Norm, hidden: tuple[int, ...]):
    points, _ = blobs(300)
    weight = np.random.default_rng(3).normal(size=(3, 4))
    network = relu_network([4, *hidden, 3])
    _start_at(network, weight, torch.from_numpy(points))
    with torch.no_grad():
        values = network(torch.from_numpy(points)).numpy()
    moved = values - points @ weight.T
    np.testing.assert_allclose(moved, np.broadcast_to(moved[0], moved.shape), atol=2e-4)
    functionals = None if norm is Norm.L2 else output_functionals(3, norm)
    bound = lipschitz_bound(network, input_directions(4, Norm.LINF), functionals).item()
    exact = operator_norm(weight, Norm.LINF, norm)
    # in l2 the largest derivative of each output counts, whatever the others are
    assert exact * (1 - 1e-4) <= bound <= exact * (1.5 if norm is Norm.L2 else 1 + 1e-4)


def test_beats_the_plain_encoder_at_equal_noise_to_constant_ratio() -> None:
    points, labels = blobs()
    ours = trained(points, labels, Norm.LINF, 15)
    plain = PublishedObfuscator(
        hidden=(16,), outputs=2, epochs=15, batch_size=64, random_state=0
    ).fit(points, labels)
    directions, functionals = input_directions(4, Norm.LINF), output_functionals(2, Norm.LINF)
    constant = lipschitz_bound(plain.network_, directions, functionals).item()
    assert accuracy(ours, 1.0, Norm.LINF) > accuracy(plain.network_, constant, Norm.LINF) + 0.1
