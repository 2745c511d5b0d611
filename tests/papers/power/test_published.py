"""The published mode: rows come back by Newton, what nobody can beat, and DP-Adam's steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from papers.power import dp_adam as power_private
from papers.power.dp_adam import train_power_privately
from papers.power.inversion import invert, relative_errors
from papers.power.reconstruction_bound import reconstruction_bound
from reticent.published.density import KernelDensity
from reticent.published.power_network import PowerConfig, PowerNetwork


@pytest.mark.parametrize("power", [1, 3])
def test_rows_come_back(power: int) -> None:
    torch.manual_seed(power)
    network = PowerNetwork(12, (8,), power)
    with torch.no_grad():
        network.directions.mul_(4 / power)
    rows = np.random.default_rng(0).uniform(0, 1, (600, 12))
    released = network.embed(rows)
    assert relative_errors(released, rows).min() > 0.01  # it is not the identity
    found = invert(network, released.astype(np.float32))
    assert (relative_errors(found, rows) < 1e-4).all()


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_the_best_estimator_of_gaussian_rows_stays_above(epsilon: float) -> None:
    """x ~ N(0, 1), z = x + Laplace(1 / epsilon): the posterior mean by quadrature is the best
    estimate there is.
    """
    random = np.random.default_rng(0)
    x = random.normal(size=20_000)
    z = x + random.laplace(scale=1 / epsilon, size=len(x))
    grid = np.linspace(-7, 7, 1401)
    prior = np.exp(-0.5 * grid**2)
    weight = prior * np.exp(-epsilon * np.abs(z[:, None] - grid))
    best = (weight @ grid) / weight.sum(axis=1)
    error = float(np.square(best - x).mean())
    bound = reconstruction_bound(1, lipschitz_epsilon=epsilon, prior_information=1.0)
    assert bound <= error * 1.02  # standard error of the mean: 1 %
    assert error <= 2.5 * bound  # and it is not idle


CONFIG = PowerConfig(steps=25, batch_size=50, learning_rate=1e-2, hidden=(4,), utility_hidden=(8,))


def data() -> tuple[np.ndarray, np.ndarray, KernelDensity]:
    random = np.random.default_rng(0)
    labels = np.arange(400) % 2
    rows = random.uniform(size=(400, 3)) + labels[:, None]
    return rows, labels, KernelDensity(rows, 0.3)


def test_learns_at_a_large_budget_and_not_at_a_tiny_one() -> None:
    rows, labels, density = data()
    loose = train_power_privately(rows, labels, CONFIG, epsilon=50.0, delta=1e-5, density=density)
    tight = train_power_privately(rows, labels, CONFIG, epsilon=0.01, delta=1e-5, density=density)
    assert len(loose.utility_losses) == len(loose.privacy_losses) == CONFIG.steps
    assert np.mean(loose.utility_losses[-5:]) < 0.8 * loose.utility_losses[0]
    assert np.mean(tight.utility_losses[-5:]) > np.mean(loose.utility_losses[-5:]) + 0.1


def test_the_first_step_is_the_clipped_mean_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise and with every row in the sample, the gradient is that of autograd, one row
    at a time, clipped.
    """
    rows, labels, density = data()
    seen: list[dict[str, torch.Tensor]] = []

    class Recorder:
        def __init__(self, plain: torch.optim.Optimizer, **settings: object) -> None:
            self.parameters = [
                parameter for group in plain.param_groups for parameter in group["params"]
            ]

        def zero_grad(self) -> None:
            pass

        def step(self) -> None:
            seen.append(
                {
                    str(index): parameter.grad_sample
                    for index, parameter in enumerate(self.parameters)
                }
            )
            torch.manual_seed(5)

    monkeypatch.setattr(power_private, "private_optimizer", Recorder)
    config = PowerConfig(steps=1, batch_size=len(rows), hidden=(4,), utility_hidden=(8,))
    trained = train_power_privately(rows, labels, config, epsilon=1.0, delta=1e-5, density=density)
    parameters = [*trained.network.parameters(), *trained.utility.parameters()]
    for row in (0, 7):
        loss = torch.nn.functional.cross_entropy(
            trained.utility(trained.network(torch.from_numpy(rows[[row]].astype(np.float32)))),
            torch.tensor([int(labels[row])]),
        )
        for index, gradient in enumerate(torch.autograd.grad(loss, parameters)):
            torch.testing.assert_close(seen[0][str(index)][row], gradient, rtol=1e-4, atol=1e-6)
