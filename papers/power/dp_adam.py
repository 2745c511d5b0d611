"""The paper's other baseline: the power encoder trained by DP-Adam on its utility loss, without the
privacy loss.

The weights are then differentially private with respect to the rows they were trained on. What
the encoder makes of a row, in training or afterwards, is not protected at all.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from papers.dpsgd import private_optimizer, step_noise
from reticent.core.checks import positive
from reticent.core.errors import InvalidInput
from reticent.published.density import KernelDensity
from reticent.published.power_network import (
    PowerConfig,
    PowerNetwork,
    PowerTraining,
    log_det_gradient,
)
from reticent.training.networks import labelled, relu_network
from reticent.training.progress import Report, silent


def train_power_privately(
    rows: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: PowerConfig,
    *,
    epsilon: float,
    delta: float,
    density: KernelDensity,
    clip: float = 1.0,
    report: Report = silent,
) -> PowerTraining:
    """Encoder and utility network trained by DP-Adam on the cross entropy; Poisson samples of
    ``config.batch_size`` rows.

    **Guarantee.** The weights cost (epsilon, delta) under the addition or removal of one record, as
    those of ``train_private``, whose noise is for experiments. Nothing is said about the rows that
    the encoder is applied to. The privacy loss is only measured.

    Args:
        rows: shape (n, d), encoded rows.
        labels: shape (n,), integers from 0, at least two classes.
        config: sizes and settings; ``private`` is not used.
        epsilon, delta: of the weights.
        density: estimate of the rows' density, for the measured privacy loss.
        clip: largest l2 norm of one row's gradient.
        report: told after every step.

    Raises:
        MissingExtra: Opacus is not installed.
        InvalidInput: rows, labels and density that do not fit together.
    """
    positive(clip, name="clip")
    points, targets, classes = labelled(rows, labels)
    if density.dimension != points.shape[1]:
        raise InvalidInput(
            f"density: has {density.dimension} coordinates, rows have {points.shape[1]}; "
            "expected the same"
        )
    generator = torch.Generator().manual_seed(config.seed)
    torch.manual_seed(config.seed)
    network = PowerNetwork(points.shape[1], config.hidden, config.power)
    utility = relu_network([points.shape[1], *config.utility_hidden, classes])
    both = torch.nn.ModuleList([network, utility])
    rate = min(1.0, config.batch_size / len(points))
    noise = step_noise(epsilon=epsilon, delta=delta, sampling_probability=rate, steps=config.steps)
    optimizer = private_optimizer(
        torch.optim.Adam(both.parameters(), lr=config.learning_rate),
        noise_multiplier=noise,
        clip=clip,
        expected_batch_size=max(1, round(rate * len(points))),
        generator=generator,
    )

    def loss(parameters: dict[str, Any], row: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        first = {name[2:]: value for name, value in parameters.items() if name.startswith("0.")}
        second = {name[2:]: value for name, value in parameters.items() if name.startswith("1.")}
        embedded = functional_call(network, first, (row[None],))
        return functional.cross_entropy(functional_call(utility, second, (embedded,)), target[None])

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))
    privacy_losses, utility_losses = [], []
    for step in range(config.steps):
        chosen = torch.nonzero(torch.rand(len(points), generator=generator) < rate)[:, 0]
        optimizer.zero_grad()
        gradients = per_sample(dict(both.named_parameters()), points[chosen], targets[chosen])
        for name, parameter in both.named_parameters():
            parameter.grad_sample = gradients[name].detach()  # type: ignore[attr-defined]
        optimizer.step()
        privacy, cross_entropy = _losses(network, utility, points[chosen], targets[chosen], density)
        privacy_losses.append(privacy)
        utility_losses.append(cross_entropy)
        report("power encoder by DP-Adam", step + 1, config.steps, cross_entropy)
    return PowerTraining(
        network.eval(), utility.eval(), tuple(privacy_losses), tuple(utility_losses)
    )


def _losses(
    network: PowerNetwork,
    utility: torch.nn.Sequential,
    batch: torch.Tensor,
    targets: torch.Tensor,
    density: KernelDensity,
) -> tuple[float, float]:
    """Privacy loss and cross entropy of a batch."""
    if not len(batch):
        return float("nan"), float("nan")
    score = torch.from_numpy(density.score(batch.numpy())).float()
    privacy = (score - log_det_gradient(network, batch)).norm(dim=1).mean().item()
    with torch.no_grad():
        cross_entropy = functional.cross_entropy(utility(network(batch)), targets).item()
    return privacy, cross_entropy
