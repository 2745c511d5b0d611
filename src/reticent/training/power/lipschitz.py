"""Our encoder of table rows, 1-Lipschitz in l2 by construction, trained through its release's
noise.

Layers are affine maps with orthonormal rows or columns. Between them pairs of values are sorted:
(a, b) becomes (max, min). Both are 1-Lipschitz in l2, and neither loses steepness where steepness
is used, as a ReLU would. So the constant over the whole space is 1 in every coordinate's worst
case, whatever the number of inputs. The sign enumeration that certifies small embeddings would need
2^d patterns here, and intervals are far too wide.
"""

from __future__ import annotations

from itertools import pairwise

import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.checks import count
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
from reticent.training.noise import noise_share, noise_spread, training_noise
from reticent.training.progress import Report, silent

_HEAD_HIDDEN = (64, 64)
_ITERATIONS = 12  # of the orthonormalisation, each of which squares the distance from orthonormal


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


def train_lipschitz_encoder(
    rows: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: TrainingConfig,
    *,
    sigma: float,
    gaussian: bool,
    outputs: int,
    hidden: tuple[int, ...],
    first_noise: float = 0.2,
    report: Report = silent,
) -> Network:
    """Train an encoder of constant 1 with a classifier of its noisy outputs.

    Args:
        rows: shape (n, d), encoded rows, public.
        labels: shape (n,), integers from 0, at least two classes.
        config: passes, batches, learning rate and seed.
        sigma: scale of the noise in output units: radius / epsilon for K-norm noise, the Gaussian's
            sigma otherwise.
        gaussian: True for Gaussian noise, False for K-norm noise in l2.
        outputs: number of released values.
        hidden: widths of the hidden layers, even numbers.
        first_noise: noise at the start of training as a share of the full noise, in (0, 1]. It
            rises along a geometric ramp over the first three quarters.
        report: a callback that is told after every epoch.

    Returns:
        The encoder as plain layers, to be certified and released with noise.

    Raises:
        InvalidInput: rows and labels do not fit.
        InvalidParameter: an odd width.
    """
    for width in hidden:
        if count(width, name="hidden") % 2:
            raise InvalidParameter(
                f"hidden={width!r}: expected even widths, because values are sorted in pairs"
            )
    points, targets, classes = labelled(rows, labels)
    torch.manual_seed(config.seed)
    network = SortingNetwork((points.shape[1], *hidden, outputs))
    head = relu_network([outputs, *_HEAD_HIDDEN, classes])
    unit = 1.0 if gaussian else noise_spread(outputs, output_norm=Norm.L2)

    def noisy_loss(batch: torch.Tensor, done: float) -> torch.Tensor:
        scale = sigma * noise_share(done, first=first_noise)
        values = network(points[batch])
        noise = (
            torch.randn(len(batch), outputs)
            if gaussian
            else training_noise(len(batch), outputs, output_norm=Norm.L2)
        )
        logits = head((values + scale * noise) / max(scale * unit, 0.3))
        return functional.cross_entropy(logits, targets[batch])

    minimise(
        noisy_loss,
        [*network.parameters(), *head.parameters()],
        config,
        rows=len(points),
        decay=True,
        stage=f"encoder, {outputs} outputs",
        report=report,
    )
    return network.eval().description()
