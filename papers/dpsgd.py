"""Private training (DP-SGD, DP-Adam) by Opacus, the baseline that private prediction is compared
with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.accounting import GaussianCost, PldAccountant, PoissonSampled, PrivacyEvent
from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.core.extras import require
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.training.networks import labelled, relu_network
from reticent.training.progress import Report, silent

_STRIDE = 1.3
_OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


@dataclass(frozen=True, kw_only=True)
class PrivateTraining:
    """Settings of a privately trained classifier.

    Attributes:
        epsilon, delta: total of the trained weights, for the addition or removal of one record.
        hidden: widths of the hidden ReLU layers. () is logistic regression.
        epochs: passes over the records, on average.
        batch_size: records per step, on average (Poisson samples). None is full batch.
        learning_rate: the rate of the first step.
        rate_decay: the decay of the rate, by which step n = 0, 1, ... has rate learning_rate / (1 +
            rate_decay n).
        clip: largest l2 norm of one record's gradient.
        optimizer: "sgd" or "adam".
        seed: the seed of weights, samples and noise.
    """

    epsilon: float
    delta: float
    hidden: tuple[int, ...] = ()
    epochs: int = 20
    batch_size: int | None = 256
    learning_rate: float = 0.5
    rate_decay: float = 0.0
    clip: float = 1.0
    optimizer: str = "sgd"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epsilon", "learning_rate", "clip"):
            positive(getattr(self, name), name=name)
        probability(self.delta, name="delta", allow_zero=False)
        if not self.rate_decay >= 0:
            raise InvalidParameter(
                f"rate_decay={self.rate_decay!r}: expected a number of at least 0"
            )
        count(self.epochs, name="epochs")
        if self.batch_size is not None:
            count(self.batch_size, name="batch_size")
        if self.optimizer not in _OPTIMIZERS:
            raise UnknownName(
                f"optimizer={self.optimizer!r}: expected one of {', '.join(_OPTIMIZERS)}"
            )


@dataclass(frozen=True, eq=False)
class PrivateModel:
    """A privately trained classifier.

    Attributes:
        network: the map from features to logits, one per class.
        guarantee: the guarantee of its weights, were the noise drawn safely.
        noise_multiplier: noise of one step over ``clip``.
        steps: number of steps.
    """

    network: nn.Sequential
    guarantee: Guarantee
    noise_multiplier: float
    steps: int

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return labels, shape (n,), for features of shape (n, d)."""
        with torch.no_grad():
            logits: torch.Tensor = self.network(torch.from_numpy(np.asarray(X, dtype=np.float32)))
        return np.asarray(logits.argmax(dim=1).numpy(), dtype=np.int64)


def step_noise(*, epsilon: float, delta: float, sampling_probability: float, steps: int) -> float:
    """Return the noise multiplier with which ``steps`` Poisson-sampled Gaussian steps stay within
    (``epsilon``, ``delta``).

    It is the smallest one by privacy-loss distributions, to 0.3 % from above.

    Args:
        epsilon, delta: the budget of all steps together.
        sampling_probability: in (0, 1]. 1 is full batch.
        steps: at least 1.

    Example:
        >>> 1.0 <= step_noise(epsilon=10.0, delta=1e-5, sampling_probability=1.0, steps=4) < 1.01
        True
    """
    positive(epsilon, name="epsilon")
    probability(delta, name="delta", allow_zero=False)

    def enough(multiplier: float) -> bool:
        step = PoissonSampled(sampling_probability, GaussianCost(multiplier))
        event = PrivacyEvent("DP-SGD step", Guarantee(epsilon, delta, AddRemove(1)), step)
        return (
            PldAccountant(AddRemove(1), interval=1e-3).compose(event, steps).epsilon(delta=delta)
            <= epsilon
        )

    # From 1 outward: the distributions of multipliers far below what is needed are huge.
    upper = 1.0
    while not enough(upper):
        upper *= _STRIDE
    while enough(upper / _STRIDE):
        upper /= _STRIDE
    lower = upper / _STRIDE
    while upper > 1.003 * lower:
        middle = math.sqrt(lower * upper)
        lower, upper = (lower, middle) if enough(middle) else (middle, upper)
    return upper


def train_private(
    X: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: PrivateTraining,
    *,
    initial: list[Array] | None = None,
    report: Report = silent,
) -> PrivateModel:
    """Train a classifier with clipped and noised gradients.

    **Guarantee.** The released weights cost (epsilon, delta) under the addition or removal of one
    record, by the accounting of Poisson-sampled Gaussian steps. *Floating point:* the noise is
    PyTorch's, drawn in float32 from a seed. This is therefore a baseline for experiments, and not a
    release path. The number of records, which sets sampling rate and step size, counts as public.

    Args:
        X: shape (n, d), finite.
        labels: shape (n,), integers 0..classes - 1.
        config: settings.
        initial: starting weights per layer, shape (units, inputs + 1) with the bias last. For two
            classes and one output unit the first class' logit starts at 0. None draws PyTorch's
            from the seed.
        report: a callback that is told after every epoch.

    Raises:
        MissingExtra: Opacus is not installed.
        InvalidInput: shapes do not fit.

    Reference: Abadi et al. 2016; Yousefpour et al. 2021 (Opacus).
    """
    points, targets, classes = labelled(X, labels)
    generator = torch.Generator().manual_seed(config.seed)
    torch.manual_seed(config.seed)
    network = relu_network([points.shape[1], *config.hidden, classes])
    if initial is not None:
        _start(network, initial)
    rate = 1.0 if config.batch_size is None else min(1.0, config.batch_size / len(points))
    per_epoch = max(1, round(1.0 / rate))
    training = PrivateSteps(
        network, points, targets, config, steps=config.epochs * per_epoch, generator=generator
    )
    for step in range(config.epochs * per_epoch):
        loss = training.step()
        if (step + 1) % per_epoch == 0:
            report("private training", (step + 1) // per_epoch, config.epochs, loss)
    guarantee = Guarantee(config.epsilon, config.delta, AddRemove(1))
    return PrivateModel(network, guarantee, training.noise_multiplier, config.epochs * per_epoch)


class PrivateSteps:
    """The steps of a private training, one at a time: a Poisson sample, clipped gradients, noise,
    an update.

    **Guarantee.** ``steps`` calls of ``step`` cost (config.epsilon, config.delta) together, as in
    ``train_private``.

    Args:
        network: the network, trained in place.
        points: shape (n, d), float32.
        targets: shape (n,), int64.
        config: settings. ``epochs`` is not used.
        steps: the number of steps to come, which decides the noise.
        generator: the generator of samples and noise.

    Raises:
        MissingExtra: Opacus is not installed.
    """

    def __init__(
        self,
        network: nn.Sequential,
        points: torch.Tensor,
        targets: torch.Tensor,
        config: PrivateTraining,
        *,
        steps: int,
        generator: torch.Generator,
    ) -> None:
        wrap, _ = _opacus()
        self.rate = 1.0 if config.batch_size is None else min(1.0, config.batch_size / len(points))
        self.noise_multiplier = step_noise(
            epsilon=config.epsilon, delta=config.delta, sampling_probability=self.rate, steps=steps
        )
        self._model = wrap(network)
        self._plain = _OPTIMIZERS[config.optimizer](
            self._model.parameters(), lr=config.learning_rate
        )
        self._optimizer = private_optimizer(
            self._plain,
            noise_multiplier=self.noise_multiplier,
            clip=config.clip,
            expected_batch_size=max(1, round(self.rate * len(points))),
            generator=generator,
        )
        self._network, self._points, self._targets = network, points, targets
        self._config, self._generator = config, generator
        self._done = 0

    def step(self) -> float:
        """Make one step by Opacus. Return the loss of its sample, or 0 where that is empty."""
        rows = self._sample()
        self._optimizer.zero_grad()
        value = 0.0
        if len(rows):
            loss = functional.cross_entropy(self._model(self._points[rows]), self._targets[rows])
            torch.autograd.backward(loss)
            value = loss.item()
        else:
            for parameter in self._model.parameters():
                parameter.grad_sample = torch.zeros(0, *parameter.shape)
        self._optimizer.step()
        return value

    def quick_step(self) -> None:
        """Make the step of ``step``, up to rounding, without any record's gradient in memory.

        A record's gradient of a linear layer is a product of two vectors, so its norm is theirs.
        The network is of linear layers and ReLUs.

        Reference: Goodfellow 2015, arXiv:1510.01799.
        """
        rows = self._sample()
        value, inputs, outputs = self._points[rows], [], []
        for layer in self._network:
            if isinstance(layer, nn.Linear):  # called as a function, or Opacus' hooks would see it
                inputs.append(value.detach())
                value = functional.linear(value, layer.weight, layer.bias)
                outputs.append(value)
            else:
                value = functional.relu(value)
        loss = functional.cross_entropy(value, self._targets[rows], reduction="sum")
        slopes = torch.autograd.grad(loss, outputs)
        squares = torch.stack(
            [
                slope.square().sum(dim=1) * (1.0 + value.square().sum(dim=1))
                for value, slope in zip(inputs, slopes, strict=True)
            ]
        )
        shares = (self._config.clip / (squares.sum(dim=0).sqrt() + 1e-6)).clamp(max=1.0)[:, None]
        sums = []
        for value, slope in zip(inputs, slopes, strict=True):
            sums += [(shares * slope).T @ value, (shares * slope).sum(dim=0)]
        expected = max(1, round(self.rate * len(self._points)))
        spread = self.noise_multiplier * self._config.clip
        for parameter, total in zip(self._network.parameters(), sums, strict=True):
            noise = torch.normal(0.0, spread, total.shape, generator=self._generator)
            parameter.grad = (total + noise) / expected
        self._plain.step()

    def _sample(self) -> torch.Tensor:
        """Return the places of the next step's records, with the rate set for it."""
        for group in self._plain.param_groups:
            group["lr"] = self._config.learning_rate / (1.0 + self._config.rate_decay * self._done)
        self._done += 1
        if self.rate == 1:
            return torch.arange(len(self._points))
        drawn = torch.rand(len(self._points), generator=self._generator)
        return torch.nonzero(drawn < self.rate)[:, 0]


def private_optimizer(
    plain: torch.optim.Optimizer,
    *,
    noise_multiplier: float,
    clip: float,
    expected_batch_size: int,
    generator: torch.Generator,
) -> Any:
    """Return ``plain`` behind Opacus, which clips, sums and noises per-sample gradients
    (``grad_sample`` of each parameter).

    Raises:
        MissingExtra: Opacus is not installed.
    """
    _, optimizer_of = _opacus()
    return optimizer_of(
        plain,
        noise_multiplier=noise_multiplier,
        max_grad_norm=clip,
        expected_batch_size=expected_batch_size,
        generator=generator,
    )


def _opacus() -> tuple[Any, Any]:
    optimizers = require("opacus.optimizers", extra="baselines")
    return require("opacus", extra="baselines").GradSampleModule, optimizers.DPOptimizer


def _start(network: nn.Sequential, initial: list[Array]) -> None:
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    given = [np.asarray(weights, dtype=np.float32) for weights in initial]
    if given and len(given[-1]) == 1 and layers[-1].out_features == 2:
        # One logit against 0, as in certified training.
        given[-1] = np.concatenate([np.zeros_like(given[-1]), given[-1]])
    shapes = [(layer.out_features, layer.in_features + 1) for layer in layers]
    if [weights.shape for weights in given] != shapes:
        raise InvalidInput(
            f"initial: expected arrays of shapes {shapes}, got "
            f"{[weights.shape for weights in given]}"
        )
    with torch.no_grad():
        for layer, weights in zip(layers, given, strict=True):
            layer.weight.copy_(torch.from_numpy(weights[:, :-1].copy()))
            layer.bias.copy_(torch.from_numpy(weights[:, -1].copy()))
