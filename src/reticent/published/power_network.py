"""The Power Mechanism's privatisation network z = H(w) w, its utility network, and their joint
training, as published.

The paper's per-sample epsilon bounds how fast the *population density* of z
changes around one sample. It says nothing about what an observer of z learns of x, because given x,
z is certain (docs/power.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtri
from torch import nn
from torch.nn import functional

from reticent.core.arrays import Array
from reticent.core.checks import count, counts, finite_array, positive, probability
from reticent.core.errors import InvalidInput
from reticent.published.density import KernelDensity
from reticent.training.networks import labelled, relu_network
from reticent.training.progress import Report

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True)
class PowerConfig:
    """Everything that decides a power encoder, apart from the rows.

    Attributes:
        power: p, the number of times that w -> H(w) w is applied, with shared weights
            (published: 1).
        hidden: widths of the tanh layers behind which the matrix H is read off.
        utility_hidden: widths of the utility network's ReLU layers.
        weight: lambda, weight of the utility loss in the joint loss.
        steps: training steps (published: 100 Forest Cover and Higgs, 30 Adult).
        batch_size: rows per step (published: 128 or 512).
        learning_rate: the rate of Adam (published: 3e-4, Adult 1e-3).
        private: True if the privacy loss is part of the joint loss. Without it this is the paper's
            non-private baseline.
        seed: the seed of weights and batches.
    """

    power: int = 1
    hidden: tuple[int, ...] = (32,)
    utility_hidden: tuple[int, ...] = (64,)
    weight: float = 1.0
    steps: int = 100
    batch_size: int = 512
    learning_rate: float = 3e-4
    private: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("power", "steps", "batch_size"):
            count(getattr(self, name), name=name)
        for name in ("weight", "learning_rate"):
            positive(getattr(self, name), name=name)
        for name in ("hidden", "utility_hidden"):
            object.__setattr__(self, name, counts(getattr(self, name), name=name))
        if not self.hidden:
            raise InvalidInput("hidden: expected at least one width")


class PowerNetwork(nn.Module):
    """The map w -> H(w) w, applied p times with the same H = reshape(B + V h(w)), h a tanh network.

    B starts at the identity and V near zero, so that the map starts near the identity and can be
    inverted.

    Args:
        dimension: number of coordinates d of rows and of embeddings.
        hidden: widths of the tanh layers.
        power: p, the number of applications.
    """

    def __init__(self, dimension: int, hidden: tuple[int, ...], power: int) -> None:
        super().__init__()
        self.dimension, self.power = dimension, power
        sizes = (dimension, *hidden)
        self.hidden = nn.ModuleList(nn.Linear(first, second) for first, second in pairwise(sizes))
        self.directions = nn.Parameter(
            torch.randn(hidden[-1], dimension, dimension) / (dimension * hidden[-1] ** 0.5)
        )
        self.matrix = nn.Parameter(torch.eye(dimension))

    @property
    def layers(self) -> list[nn.Linear]:
        """The affine layers of h, first one first."""
        return [layer for layer in self.hidden if isinstance(layer, nn.Linear)]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return embeddings, shape (n, d), of ``rows`` of shape (n, d)."""
        for _ in range(self.power):
            features = rows
            for layer in self.layers:
                features = torch.tanh(layer(features))
            rows, _ = self._image(rows, features)
        return rows

    def _image(
        self, rows: torch.Tensor, features: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        turned = torch.einsum("kij,bj->bik", self.directions, rows)
        return rows @ self.matrix.T + (turned @ features[:, :, None])[:, :, 0], turned

    def step(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return g(w), one application, shape (n, d), and its Jacobian, shape (n, d, d), at rows w.

        With g(w) = B w + sum_k h_k(w) V_k w the Jacobian is B + sum_k h_k(w) V_k + [V_1 w, ..., V_K
        w] h'(w). It is exact, and takes no pass per coordinate.
        """
        features = rows
        slopes = torch.eye(self.dimension, dtype=rows.dtype)
        for layer in self.layers:
            features = torch.tanh(layer(features))
            slopes = (1.0 - features.square())[:, :, None] * (layer.weight @ slopes)
        image, turned = self._image(rows, features)
        own = torch.einsum("bk,kij->bij", features, self.directions)
        return image, self.matrix + own + turned @ slopes

    def jacobians(self, rows: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Return G(x), shape (n, d), and every application's Jacobian, shape (n, d, d) each."""
        parts = []
        for _ in range(self.power):
            rows, jacobian = self.step(rows)
            parts.append(jacobian)
        return rows, parts

    def embed(self, rows: npt.ArrayLike) -> Array:
        """Return embeddings, shape (n, d), float64, of a whole array of rows, without gradients."""
        with torch.no_grad():
            return _in_blocks(self, rows, self)


def log_det_gradient(
    network: PowerNetwork, rows: torch.Tensor, *, differentiable: bool = False
) -> torch.Tensor:
    """Return the per-sample gradient of sum_k log |det J_k| with respect to x, shape (n, d),
    exactly.

    Rows do not meet each other on the way, so the gradient of the sum over the batch is the
    gradient of each row's own term. One backward pass serves all of them.

    Args:
        network: the privatisation network.
        rows: shape (n, d).
        differentiable: True if gradients may flow through the result to the weights.

    Edge cases: a singular Jacobian gives entries that are not finite (its log-determinant has no
    gradient there).
    """
    with torch.enable_grad():
        inputs = rows.detach().requires_grad_(True)
        _, parts = network.jacobians(inputs)
        total = torch.stack([torch.linalg.slogdet(part).logabsdet.sum() for part in parts]).sum()
        (gradient,) = torch.autograd.grad(total, inputs, create_graph=differentiable)
    return gradient


def log_det_gradients(network: PowerNetwork, rows: npt.ArrayLike) -> Array:
    """Return ``log_det_gradient`` of a whole array, in blocks, shape (n, d), float64."""
    return _in_blocks(network, rows, partial(log_det_gradient, network))


def _in_blocks(
    network: PowerNetwork, rows: npt.ArrayLike, function: Callable[[torch.Tensor], torch.Tensor]
) -> Array:
    points = finite_array(rows, name="rows", ndim=2, columns=network.dimension)
    starts, kind = range(0, len(points), _ROWS_AT_ONCE), network.matrix.dtype
    parts = (torch.from_numpy(points[start : start + _ROWS_AT_ONCE]).to(kind) for start in starts)
    return np.concatenate([function(part).double().numpy() for part in parts])


@dataclass(frozen=True, eq=False)
class PowerTraining:
    """A trained power encoder.

    Attributes:
        network: the privatisation network.
        utility: the utility network, from embeddings to logits.
        privacy_losses, utility_losses: mean norm of score minus log-det gradient, and cross
            entropy, one entry per step.
    """

    network: PowerNetwork
    utility: nn.Sequential
    privacy_losses: tuple[float, ...]
    utility_losses: tuple[float, ...]


class PowerSteps:
    """Training of both networks on the paper's joint loss (equation 1), one step at a time.

    The loss of a batch is the mean of ||score(x) - grad_x sum_k log |det J_k||| plus ``weight``
    times the cross entropy of the utility network on G(x). Scores are those of ``density`` at the
    rows of the batch, computed when they are met.

    Args:
        rows: shape (n, d), encoded rows.
        labels: shape (n,), integers from 0, at least two classes.
        config: sizes and settings.
        density: estimate of the rows' density.

    Raises:
        InvalidInput: rows, labels and density do not fit together.
    """

    def __init__(
        self,
        rows: npt.ArrayLike,
        labels: npt.ArrayLike,
        config: PowerConfig,
        *,
        density: KernelDensity,
    ) -> None:
        self._points, self._targets, classes = labelled(rows, labels)
        dimension = self._points.shape[1]
        if density.dimension != dimension:
            raise InvalidInput(
                f"density: has {density.dimension} coordinates, rows have {dimension}; "
                "expected the same"
            )
        torch.manual_seed(config.seed)
        self.network = PowerNetwork(dimension, config.hidden, config.power)
        self.utility = relu_network([dimension, *config.utility_hidden, classes])
        self._optimizer = torch.optim.Adam(self.parameters, lr=config.learning_rate)
        self._config, self._density = config, density

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Parameters of both networks."""
        return [*self.network.parameters(), *self.utility.parameters()]

    def step(self) -> tuple[float, float]:
        """Make one step. Return the privacy loss and the utility loss of its batch.

        It draws from torch's global generator.
        """
        config = self._config
        chosen = torch.randint(len(self._points), (min(config.batch_size, len(self._points)),))
        batch = self._points[chosen]
        utility_loss = functional.cross_entropy(
            self.utility(self.network(batch)), self._targets[chosen]
        )
        loss = config.weight * utility_loss
        score = torch.from_numpy(self._density.score(batch.numpy()).astype(np.float32))
        gradient = log_det_gradient(self.network, batch, differentiable=config.private)
        privacy_loss = (score - gradient).norm(dim=1).mean()
        if config.private:
            loss = loss + privacy_loss
        self._optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        self._optimizer.step()
        return privacy_loss.item(), utility_loss.item()

    def run(self, report: Report) -> PowerTraining:
        """Make all steps of the settings, and tell ``report`` after each."""
        config, losses = self._config, []
        for step in range(config.steps):
            privacy, utility = self.step()
            losses.append((privacy, utility))
            report("power encoder", step + 1, config.steps, privacy + config.weight * utility)
        first, second = zip(*losses, strict=True)
        return PowerTraining(self.network.eval(), self.utility.eval(), first, second)


def per_sample_epsilon(
    network: PowerNetwork, density: KernelDensity, rows: npt.ArrayLike, *, alpha: float
) -> Array:
    """Return the per-sample epsilon of the paper's section 4.6 for every row, shape (n,).

    It is at least 0, and infinite where it is not defined. Let K = mu_K / (n h^d), fhat the
    density, s = grad fhat / fhat its score, g the gradient of the log-determinants, and z the
    normal quantile at 1 - alpha / 2. Then it is

        max(||s / (1 - z r) - g||, ||s / (1 + z r) - g||) + d z r / 2,     r = sqrt(K / fhat),

    because grad fhat / (fhat -+ z sqrt(K fhat)) = s / (1 -+ z r).

    Where ``rows`` are the centers of the estimate themselves, each row's own kernel takes part, as
    published. In high dimensions that kernel outweighs all others, and its gradient at its own
    center is 0. The number then measures the log-determinant alone.

    Args:
        network: the privatisation network.
        density: estimate of the rows' density.
        rows: shape (n, d), encoded rows.
        alpha: one minus the confidence of the density's interval, in (0, 1).

    Edge cases: where the interval reaches down to density 0 (z r >= 1) no bound exists, and the
    answer is infinity. So it is where the log-determinant has no gradient.
    """
    quantile = float(ndtri(1.0 - 0.5 * probability(alpha, name="alpha", allow_zero=False)))
    logs, scores = density.evaluate(rows)
    gradients = log_det_gradients(network, rows)
    ratio = np.exp(np.minimum(0.5 * (density.log_variance_constant - logs), 300.0))
    reach = quantile * ratio
    defined = (reach < 1.0) & np.isfinite(gradients).all(axis=1)
    epsilon = np.full(len(logs), np.inf)
    inner, wide, slope = scores[defined], reach[defined, None], gradients[defined]
    lower = np.linalg.norm(inner / (1.0 - wide) - slope, axis=1)
    upper = np.linalg.norm(inner / (1.0 + wide) - slope, axis=1)
    epsilon[defined] = np.maximum(lower, upper) + 0.5 * scores.shape[1] * reach[defined]
    return epsilon
