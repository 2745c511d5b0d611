"""Our encoder of table rows, 1-Lipschitz in l2 by construction, trained through its release's
noise.

Layers are affine maps with orthonormal rows or columns. Between them pairs of values are sorted:
(a, b) becomes (max, min). Both are 1-Lipschitz in l2, and neither loses steepness where steepness
is used, as a ReLU would. So the constant over the whole space is 1 in every coordinate's worst
case, whatever the number of inputs. The sign enumeration that certifies small embeddings would need
2^d patterns here, and intervals are far too wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.checks import count, positive
from reticent.core.errors import InvalidParameter
from reticent.core.norms import Norm
from reticent.networks import Affine, Network
from reticent.networks.layers import Layer
from reticent.networks.sorting import pair_sort
from reticent.training.networks import (
    TrainingConfig,
    labelled,
    minimise,
    relu_network,
    sorted_pairs,
)
from reticent.training.noise import check_first_noise, noise_share, noise_spread, training_noise
from reticent.training.progress import Report, silent

_ITERATIONS = 12  # of the orthonormalisation, each of which squares the distance from orthonormal


@dataclass(frozen=True, kw_only=True)
class LipschitzEncoderConfig(TrainingConfig):
    """Everything that decides the encoder, apart from the rows.

    Attributes:
        epsilon: budget that the released values will be given.
        delta: 0 for K-norm noise in l2, above 0 for Gaussian noise.
        radius: l2 distance of neighbours in encoded units, above 0.
        outputs: number of released values.
        hidden: widths of the hidden layers, even numbers.
        head_hidden: widths of the hidden layers of the head trained with it.
        first_noise: noise at the start of training as a share of the full noise, in (0, 1]. It
            rises along a geometric ramp over the first three quarters.
    """

    epsilon: float
    delta: float
    radius: float
    outputs: int
    hidden: tuple[int, ...] = (64, 64)
    head_hidden: tuple[int, ...] = (64, 64)
    epochs: int = 20
    batch_size: int = 500
    learning_rate: float = 5e-3
    first_noise: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epsilon", "radius"):
            positive(getattr(self, name), name=name)
        count(self.outputs, name="outputs")
        check_first_noise(self.first_noise)
        for width in self.hidden:
            if count(width, name="hidden") % 2:
                raise InvalidParameter(
                    f"hidden={width!r}: expected even widths, because values are sorted in pairs"
                )


class SortingNetwork(nn.Module):
    """Orthonormal affine layers with pairwise sorting between them.

    Args:
        sizes: inputs, hidden layers (even), outputs.
    """

    def __init__(self, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(first, second) for first, second in pairwise(sizes))
        for layer in self.linear_layers:
            nn.init.orthogonal_(layer.weight)

    @property
    def linear_layers(self) -> list[nn.Linear]:
        """The affine layers. Their weights are made orthonormal where they are used."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return encoder outputs, shape (n, outputs), of ``rows`` of shape (n, inputs)."""
        last = len(self.layers) - 1
        for index, layer in enumerate(self.linear_layers):
            rows = functional.linear(rows, orthonormal(layer.weight), layer.bias)
            if index < last:
                rows = sorted_pairs(rows)
        return rows

    def description(self) -> Network:
        """Return the same map as plain float64 layers, where sorting a pair is x + (relu(b - a),
        -relu(b - a)).
        """
        layers: list[Layer] = []
        last = len(self.layers) - 1
        for index, layer in enumerate(self.linear_layers):
            weight = orthonormal(layer.weight.detach().double()).numpy()
            layers.append(Affine(weight, layer.bias.detach().double().numpy()))
            if index < last:
                layers.append(pair_sort(len(weight)))
        return Network(tuple(layers), (self.linear_layers[0].in_features,))


def orthonormal(weight: torch.Tensor) -> torch.Tensor:
    """Return a matrix with (nearly) orthonormal rows, or columns if there are fewer of them,
    differentiably.

    Björck's iteration W <- W (3 I - W' W) / 2 starts from a spectral norm of at most 1. Where it
    has not converged, singular values are below 1, never above, so the certificate of the finished
    network does not rest on convergence.

    Reference: Anil, Lucas and Grosse, "Sorting out Lipschitz function approximation", 2019.
    """
    wide = weight.shape[0] <= weight.shape[1]
    matrix = weight if wide else weight.T
    absolute = matrix.abs()
    matrix = matrix / (absolute.sum(dim=0).max() * absolute.sum(dim=1).max()).sqrt().clamp(
        min=1e-12
    )
    # Brings the largest singular value near 1, where the iteration is fast. The row-and-column
    # bound above is loose.
    gram = matrix @ matrix.T
    matrix = matrix / gram.square().sum().sqrt().sqrt().clamp(min=1e-12)
    for _ in range(_ITERATIONS):
        matrix = 1.5 * matrix - 0.5 * (matrix @ matrix.T) @ matrix
    return matrix if wide else matrix.T


@dataclass(frozen=True)
class LipschitzEncoder:
    """A trained encoder.

    Attributes:
        network: its plain description, to be certified and released with noise.
        loss: mean training loss of the last epoch.
    """

    network: Network
    loss: float


def train_lipschitz_encoder(
    rows: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: LipschitzEncoderConfig,
    *,
    sigma: float,
    report: Report = silent,
) -> LipschitzEncoder:
    """Train an encoder of constant 1 with a classifier of its noisy outputs.

    Args:
        rows: shape (n, d), encoded rows, public.
        labels: shape (n,), integers from 0, at least two classes.
        config: radius, budget, sizes and settings.
        sigma: scale of the noise in output units: radius / epsilon for K-norm noise, the Gaussian's
            sigma otherwise.
        report: a callback that is told after every epoch.

    Raises:
        InvalidInput: rows and labels do not fit.
    """
    points, targets, classes = labelled(rows, labels)
    torch.manual_seed(config.seed)
    network = SortingNetwork((points.shape[1], *config.hidden, config.outputs))
    head = relu_network([config.outputs, *config.head_hidden, classes])
    unit = 1.0 if config.delta else noise_spread(config.outputs, output_norm=Norm.L2)

    def noisy_loss(batch: torch.Tensor, done: float) -> torch.Tensor:
        scale = sigma * noise_share(done, first=config.first_noise)
        values = network(points[batch])
        noise = (
            torch.randn(len(batch), config.outputs)
            if config.delta
            else training_noise(len(batch), config.outputs, output_norm=Norm.L2)
        )
        logits = head((values + scale * noise) / max(scale * unit, 0.3))
        return functional.cross_entropy(logits, targets[batch])

    loss = minimise(
        noisy_loss,
        [*network.parameters(), *head.parameters()],
        config,
        rows=len(points),
        decay=True,
        stage=f"encoder, epsilon {config.epsilon:g}, {config.outputs} outputs",
        report=report,
    )
    return LipschitzEncoder(network.eval().description(), loss)
