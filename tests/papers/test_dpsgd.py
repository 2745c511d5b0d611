"""Private training: noise by an independent accountant, the size of what is added, and learning
at a generous budget.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from papers import dpsgd
from papers.dpsgd import PrivateSteps, PrivateTraining, step_noise, train_private
from reticent.training.networks import relu_network

# Opacus' gradient samples use hooks that PyTorch warns about, and its imports pass a deprecated
# name; neither is ours to mend.
pytestmark = [
    pytest.mark.skipif(find_spec("opacus") is None, reason="needs the extra 'baselines'"),
    pytest.mark.filterwarnings(
        "ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
    ),
]


def gaussian_delta(epsilon: float, shift: float) -> float:
    return float(
        stats.norm.cdf(shift / 2 - epsilon / shift)
        - np.exp(epsilon) * stats.norm.cdf(-shift / 2 - epsilon / shift)
    )


@pytest.mark.parametrize(("epsilon", "steps"), [(10.0, 4), (1.0, 20)])
def test_full_batch_noise_is_the_exact_gaussian_one(epsilon: float, steps: int) -> None:
    # Steps of a Gaussian mechanism are one of larger shift: Balle and Wang 2018 give its delta in
    # closed form.
    shift = optimize.brentq(lambda value: gaussian_delta(epsilon, value) - 1e-5, 1e-3, 50.0)
    noise = step_noise(epsilon=epsilon, delta=1e-5, sampling_probability=1.0, steps=steps)
    exact = np.sqrt(steps) / shift
    assert exact * (1 - 1e-6) <= noise < exact * 1.02


def test_noise_of_a_step_has_the_stated_size() -> None:
    # Records with gradient zero (both logits at 0, labels balanced): what a full-batch step adds is
    # noise alone.
    X = np.zeros((1000, 50))
    labels = np.arange(1000) % 2
    config = PrivateTraining(
        epsilon=1.0, delta=1e-5, epochs=1, batch_size=None, learning_rate=1.0, clip=0.5
    )
    model = train_private(X, labels, config, initial=[np.zeros((1, 51))])
    weights = np.concatenate(
        [parameter.detach().numpy().ravel() for parameter in model.network.parameters()]
    )[:100]
    spread = model.noise_multiplier * 0.5 / 1000
    # 100 normal numbers: the sum of squares is chi-squared; false alarm below 1e-6.
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 100)
    assert low < (weights**2).sum() / spread**2 < high
    assert not low < (weights**2).sum() / (spread / 2) ** 2 < high  # halved noise would be seen


def test_one_record_moves_a_step_by_no_more_than_the_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpsgd, "step_noise", lambda **_: 1e-12)
    X = np.random.default_rng(0).normal(size=(20, 3))
    labels = (X[:, 0] > 0).astype(int)
    X[0] *= 1e4
    config = PrivateTraining(
        epsilon=1.0, delta=1e-5, epochs=1, batch_size=None, learning_rate=20.0, clip=0.1
    )
    start = [np.zeros((1, 4))]
    with_, without = (
        train_private(X[first:], labels[first:], config, initial=start) for first in (0, 1)
    )
    moved = [
        20 * a.detach().numpy() - 19 * b.detach().numpy()
        for a, b in zip(*(m.network.parameters() for m in (with_, without)), strict=True)
    ]
    assert np.sqrt(sum((part**2).sum() for part in moved)) / 20 == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("batch", [40, None])
def test_a_quick_step_is_the_step_of_opacus(
    monkeypatch: pytest.MonkeyPatch, batch: int | None
) -> None:
    monkeypatch.setattr(dpsgd, "step_noise", lambda **_: 1.5)
    random = np.random.default_rng(0)
    points = torch.from_numpy(random.normal(size=(60, 3)).astype(np.float32)) * 3.0
    targets = torch.from_numpy(np.arange(60) % 3)
    config = PrivateTraining(
        epsilon=1.0, delta=1e-5, batch_size=batch, learning_rate=0.5, rate_decay=0.3, clip=0.7
    )

    def trained(way: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        network = relu_network([3, 5, 4, 3])
        training = PrivateSteps(
            network,
            points,
            targets,
            config,
            steps=3,
            generator=torch.Generator().manual_seed(1),
        )
        for _ in range(3):
            getattr(training, way)()
        return [parameter.detach() for parameter in network.parameters()]

    for quick, stated in zip(trained("quick_step"), trained("step"), strict=True):
        torch.testing.assert_close(quick, stated, rtol=1e-4, atol=1e-5)
