"""The small ReLU networks that obfuscators are made of, and the settings and the loop of all
training on public rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from reticent.core.checks import count, positive
from reticent.core.errors import InvalidInput
from reticent.training.progress import Report


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings of any training by ``minimise``. Each kind of training adds its own.

    Attributes:
        epochs: passes over the rows.
        batch_size: rows per step. The last, shorter batch of a pass counts too.
        learning_rate: the rate of Adam at the start. Where it decays, it falls to 0 along half a
            cosine.
        seed: the seed of weights, order and noise.

    Raises:
        InvalidParameter: a value is out of its range.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            count(getattr(self, name), name=name)
        positive(self.learning_rate, name="learning_rate")


def relu_network(sizes: Sequence[int]) -> nn.Sequential:
    """Return linear layers of the given sizes with a ReLU between any two.

    Args:
        sizes: inputs, hidden layers, outputs, at least two numbers.

    Example:
        >>> relu_network([8, 32, 6])[1]
        ReLU()
    """
    for size in sizes:
        count(size, name="sizes")
    if len(sizes) < 2:
        raise InvalidInput(f"sizes={list(sizes)}: expected at least inputs and outputs")
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def sorted_pairs(values: torch.Tensor) -> torch.Tensor:
    """Return every pair (a, b) of neighbouring values as (max(a, b), min(a, b)), shape
    (n, an even m).

    ``reticent.networks.sorting.pair_sort`` does the same in a finished network.

    Example:
        >>> sorted_pairs(torch.tensor([[1.0, 3.0, 5.0, 2.0]])).tolist()
        [[3.0, 1.0, 5.0, 2.0]]
    """
    pairs = values.view(len(values), -1, 2)
    return torch.stack([pairs.amax(dim=2), pairs.amin(dim=2)], dim=2).flatten(1)


def rescale(network: nn.Sequential, factor: torch.Tensor) -> None:
    """Multiply the outputs of ``network``, which ends with a Linear layer, by ``factor``, in
    place.
    """
    last = network[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.mul_(factor)
        last.bias.mul_(factor)


def labelled(
    embeddings: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return embeddings (n, d) as float32 and labels (n,) as int64 tensors, and the number of
    classes (largest label + 1).

    Raises:
        InvalidInput: shapes are wrong, embeddings are not finite, labels are not integers of at
            least 0, or there is one class.
    """
    points = np.asarray(embeddings, dtype=np.float32)
    targets = np.asarray(labels)
    if points.ndim != 2 or len(points) == 0 or points.shape[1] == 0:
        raise InvalidInput(
            f"embeddings: expected shape (n, d) with n and d at least 1, got shape={points.shape}"
        )
    if not np.isfinite(points).all():
        raise InvalidInput("embeddings: contains values that are not finite")
    if targets.shape != (len(points),) or targets.dtype.kind not in "iu":
        raise InvalidInput(
            f"labels: expected {len(points)} integers, got dtype={targets.dtype} "
            f"shape={targets.shape}"
        )
    if targets.min() < 0 or targets.max() == 0:
        raise InvalidInput("labels: expected integers 0..classes - 1 of at least two classes")
    return (
        torch.from_numpy(points),
        torch.from_numpy(targets.astype(np.int64)),
        int(targets.max()) + 1,
    )


class Adam:
    """Adam as ``torch.optim`` has it, to the bit.

    ``torch.optim`` imports torch's compiler, which takes 3 CPU s, more than most trainings here.

    Args:
        parameters: the parameters that are trained.
        betas: decay of the means of gradients and of their squares, in [0, 1).

    References:
        - Kingma and Ba (2015), "Adam: a method for stochastic optimization", arXiv:1412.6980.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, betas: tuple[float, float] = (0.9, 0.999)
    ) -> None:
        self._moments = [
            (each, torch.zeros_like(each), torch.zeros_like(each)) for each in parameters
        ]
        self._betas = betas
        self._steps = 0

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move all parameters that have a gradient by one step, and forget the gradients."""
        self._steps += 1
        first, second = self._betas
        rate = learning_rate / (1.0 - first**self._steps)
        unbias = math.sqrt(1.0 - second**self._steps)
        for each, mean, square in self._moments:
            if each.grad is None:
                continue
            mean.lerp_(each.grad, 1.0 - first)
            square.mul_(second).addcmul_(each.grad, each.grad, value=1.0 - second)
            each.addcdiv_(mean, (square.sqrt() / unbias).add_(1e-8), value=-rate)
            each.grad = None


def minimise(
    loss: Callable[[torch.Tensor, float], torch.Tensor],
    parameters: Iterable[nn.Parameter],
    config: TrainingConfig,
    *,
    rows: int,
    decay: bool,
    stage: str,
    report: Report,
) -> float:
    """Minimise ``loss`` by Adam on batches of row numbers. Return the mean loss of the last epoch.

    Numbers are drawn from torch's global generator, which the caller seeds.

    Args:
        loss: the loss to lower, given the row numbers of a batch and the share of training done in
            [0, 1).
        parameters: the parameters that are trained.
        config: passes, rows per step and rate. Its seed is not used.
        rows: number of training rows.
        decay: True to let the learning rate fall to 0 along half a cosine.
        stage: name given to ``report``.
        report: a callback that is told after every epoch.
    """
    epochs, learning_rate = config.epochs, config.learning_rate
    optimizer = Adam(parameters)
    steps = epochs * math.ceil(rows / config.batch_size)
    step, mean = 0, math.nan
    for epoch in range(epochs):
        total = 0.0
        for batch in torch.split(torch.randperm(rows), config.batch_size):
            rate = learning_rate
            if decay:
                rate *= 0.5 * (1 + math.cos(math.pi * step / steps))
            value = loss(batch, step / steps)
            torch.autograd.backward(value)
            optimizer.step(rate)
            total += value.item() * len(batch)
            step += 1
        mean = total / rows
        report(stage, epoch + 1, epochs, mean)
    return mean
