"""Our obfuscator, trained through the very noise that its release will add.

The loss adds noise of scale ``U * radius / epsilon``, where U is the differentiable bound of
``lipschitz_objective``. The network is thus charged what it costs, no more and no less. It may be
as nonlinear as the enumeration bound can follow, and it spends its Lipschitz constant where that
pays. Training may start at a linear map of the embedding, such as the embedding itself. Then the
head learns first, at the full noise, and both are trained on from there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput
from reticent.core.norms import Norm
from reticent.training.heads import Head
from reticent.training.lipschitz_objective import (
    input_directions,
    lipschitz_bound,
    output_functionals,
)
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network, rescale
from reticent.training.noise import noise_share, noise_spread, training_noise
from reticent.training.progress import Report, silent

if TYPE_CHECKING:
    from reticent.training.parts.contract import PlannedRelease

_HEAD_FIRST = 0.25
"""Share of training that a start is kept for, while the head learns."""

_SMALLER_STEPS = 0.3
"""Learning rate from a start, as a share of the usual one: what is good already is not to be lost
in the first steps.
"""


_HEAD_HIDDEN = (64, 64)
_WARM_UP = 0.8
"""Share of training with the cross entropy, which has a gradient everywhere. The rest raises the
head's mean probability of the right label, which is nearer to the accuracy that counts.
"""


def train_noise_aware(
    embeddings: npt.ArrayLike,
    labels: npt.ArrayLike,
    release: PlannedRelease,
    config: TrainingConfig,
    *,
    outputs: int,
    hidden: tuple[int, ...],
    first_noise: float,
    start: npt.ArrayLike | None = None,
    report: Report = silent,
) -> nn.Sequential:
    """Train an obfuscator, and a head beside it, on released values.

    Args:
        embeddings: shape (n, d), clipped to the public domain if there is one.
        labels: shape (n,), integers 0..classes - 1.
        release: budget, radius R, the norm of neighbours (linf or l1), and the norm of the outputs
            by the mechanism that releases them: l1 (Laplace), linf or l2 (K-norm).
        config: passes, batches, learning rate and seed.
        outputs: number of released values.
        hidden: widths of the hidden layers.
        first_noise: noise at the start of training as a share of the full noise, in (0, 1]. It
            rises along a geometric ramp over the first three quarters. A small budget that starts
            at full noise stays in a poor optimum (at epsilon 1 that costs up to 8 points).
        start: a linear map, shape (outputs, d), that the network computes before training, wherever
            these embeddings lie, at the bound of that map. Noise is full from the beginning then,
            and ``first_noise`` is not used. None for random weights.
        report: a callback that is told after every epoch.

    Returns:
        Linear and ReLU layers in evaluation mode, scaled so that the training bound on their
        constant is 1. The constant must still be certified, because the training bound is float32
        and rounds either way.

    Raises:
        InvalidInput: embeddings and labels do not fit, or a start has another shape, or more
            outputs than a hidden layer has units.
        UnsupportedNorm: the input norm has infinitely many extreme points, or inputs or outputs are
            too many to enumerate.

    Edge cases:
        Embeddings that carry nothing about the labels leave a network of constant 1 that releases
        noise.
    """
    norm = release.output
    assert isinstance(norm, Norm)  # vectors are released
    points, targets, classes = labelled(embeddings, labels)
    directions = input_directions(points.shape[1], release.input_norm)
    functionals = None if norm is Norm.L2 else output_functionals(outputs, norm)
    torch.manual_seed(config.seed)
    network = relu_network([points.shape[1], *hidden, outputs])
    if start is not None:
        _start_at(network, _checked_start(start, (*hidden, outputs), points.shape[1]), points)
        first_noise = 1.0
        config = replace(config, learning_rate=_SMALLER_STEPS * config.learning_rate)
    head = Head(outputs, classes, _HEAD_HIDDEN)
    scale = release.radius / release.epsilon
    unit = noise_spread(outputs, output_norm=norm)

    def values(rows: torch.Tensor, share: float) -> torch.Tensor:
        """Return released values at ``share`` of the full noise, in units that keep their size near
        1 throughout.
        """
        bound = lipschitz_bound(network, directions, functionals)
        noise = training_noise(len(rows), outputs, output_norm=norm)
        released: torch.Tensor = network(points[rows]) / bound + share * scale * noise
        return released / max(share * scale * unit, 1.0)

    def loss(rows: torch.Tensor, done: float) -> torch.Tensor:
        network.requires_grad_(start is None or done >= _HEAD_FIRST)
        logits = head.network(values(rows, noise_share(done, first=first_noise)))
        if done < _WARM_UP:
            return functional.cross_entropy(logits, targets[rows])
        return -torch.softmax(logits, dim=1).gather(1, targets[rows][:, None]).mean()

    minimise(
        loss,
        [*network.parameters(), *head.parameters()],
        config,
        rows=len(points),
        decay=True,
        stage=f"noise-aware, epsilon {release.epsilon:g}",
        report=report,
    )
    with torch.no_grad():
        rescale(network, 1.0 / lipschitz_bound(network, directions, functionals))
    return network.eval()


def _checked_start(start: npt.ArrayLike, widths: tuple[int, ...], inputs: int) -> Array:
    weight = finite_array(start, name="start", ndim=2)
    if weight.shape != (widths[-1], inputs) or min(widths) < len(weight):
        raise InvalidInput(
            f"start: expected shape ({widths[-1]}, {inputs}) and hidden layers of at least as many "
            f"units as outputs, got shape={weight.shape}, hidden={widths[:-1]}"
        )
    return weight


def _start_at(network: nn.Sequential, weight: Array, points: torch.Tensor) -> None:
    """Set ``network`` to x -> W x, up to a constant, wherever the rows of ``points`` lie.

    One unit of each hidden layer carries one output, lifted so far that no row of ``points`` takes
    it to where the ReLU bends. The bound over the whole space counts a unit's slope as anything
    from 0 to 1, and the largest such sum is that of the map itself. The other units are drawn at
    random and do not count yet.
    """
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    rows = torch.from_numpy(weight.astype(np.float32))
    outputs = len(rows)
    with torch.no_grad():
        values = points @ rows.T
        lift = values.amax(dim=0) - 2.0 * values.amin(dim=0)
        for layer in layers[1:]:
            layer.weight[:outputs].zero_()
            layer.weight[:outputs, :outputs].copy_(torch.eye(outputs))
            layer.bias[:outputs].zero_()
        if len(layers) == 1:
            layers[0].weight.copy_(rows)
            layers[0].bias.zero_()
            return
        layers[0].weight[:outputs].copy_(rows)
        layers[0].bias[:outputs].copy_(lift)
        layers[-1].bias.copy_(-lift)
