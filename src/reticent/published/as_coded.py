"""Obfuscators as the authors' public code trains them, which is not what their text says.

The facts come from the public repository of Singh and others, commits 8cd81ff, 7384760 and abc903c
(May to September 2022). Nothing of its source is here. It may differ from what made the printed
tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array, one_of, positive
from reticent.core.errors import InvalidInput
from reticent.core.settings import learned, with_settings
from reticent.networks import Network, affine_chain
from reticent.training.networks import labelled, relu_network
from reticent.training.parts.contract import seed_of
from reticent.training.parts.obfuscators import Obfuscator
from reticent.training.progress import Report, silent


@dataclass(frozen=True, kw_only=True)
class CodedRow:
    """One row of the code's list of configurations for MNIST.

    Attributes:
        alpha: weight of the adversary's term, in [0, 1). It is *added*.
        noise: scale of the Laplace noise in the predictor's own step, at least 0.
    """

    alpha: float
    noise: float = 0.0


CODED_ROWS = {
    "Encoder": CodedRow(alpha=0.0),
    "ARL": CodedRow(alpha=0.9),
    "C": CodedRow(alpha=0.001),
    "N": CodedRow(alpha=0.001, noise=0.1),
    "ARL-C": CodedRow(alpha=0.99),
    "ARL-N": CodedRow(alpha=0.99, noise=0.01),
    "C-N": CodedRow(alpha=0.001, noise=0.01),
    "ARL-C-N": CodedRow(alpha=0.99, noise=0.01),
}
"""Rows of the table as coded. The contrastive term has no gradient, so C says nothing: ARL-N and
ARL-C-N are one program.
"""

_DROPPED = (0.2, 0.2, 0.1, 0.1)
_DIRECTIONS = 40  # principal components of a picture that the adversary rebuilds
_WIDTH = 10
_SEEN = 10_000


@with_settings
class CodedObfuscator(Obfuscator):
    """An obfuscator trained as the authors' code does, with the predictor that it is trained with.

    The adversary rebuilds the picture, its loss is a mean over pixels, and it enters the
    obfuscator's loss with a *plus* sign: the obfuscator helps it. The contrastive term has no
    gradient and is left out. The predictor is linear at test time and never sees a release's noise.

    Differs from the code: the adversary is a dense network on 40 principal components, and the pass
    that is kept is the best one on held-out training rows. The code keeps the best on test rows.

    Args:
        row: a name of ``CODED_ROWS``.
        sign: "plus" as coded, or "minus" as the text says.
        hidden: widths of the hidden layers.
        outputs: number of released values.
        epochs: passes over the embeddings (the code: 50 to 300).
        batch_size: embeddings per step.
        learning_rate: the rate of Adam.
        random_state: seed of training. None takes that of the estimator which it is a part of.

    Attributes:
        network_: the trained network.
        predictor_: the affine classifier on its outputs.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> points = rng.normal(size=(200, 2))
        >>> part = CodedObfuscator(row="ARL", outputs=2, hidden=(4,), epochs=1, random_state=0)
        >>> part = part.fit(points, (points[:, 0] > 0).astype(int), pictures=points)
        >>> part.predictor().output_dimension
        2

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), table 1.

    See Also:
        reticent.published.PublishedObfuscator: as the text says.
    """

    row: str
    sign: str = "plus"
    hidden: tuple[int, ...] = (8, 8)
    outputs: int = 8
    epochs: int = 25
    batch_size: int = 128
    learning_rate: float = 1e-3
    random_state: int | np.random.RandomState | None = None

    network_: nn.Sequential = learned()
    predictor_: Network = learned()

    @override
    def check(self) -> None:
        one_of(self.row, tuple(CODED_ROWS), name="row")
        one_of(self.sign, ("plus", "minus"), name="sign")
        count(self.epochs, name="epochs")
        count(self.batch_size, name="batch_size", minimum=2)
        positive(self.learning_rate, name="learning_rate")

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        pictures: npt.ArrayLike,
        spread: npt.ArrayLike | None = None,
        report: Report = silent,
    ) -> Self:
        """Train obfuscator, predictor and adversary, each by its own step on every batch.

        Args:
            X: embeddings, shape (n, d), n at least 20.
            y: shape (n,), classes 0, 1, ...
            pictures: what the adversary rebuilds, shape (n, ...).
            spread: standard deviation of each embedding, shape (n, d), drawn anew in every batch as
                the code does. None for none.
            report: a callback that is told after every epoch.

        Raises:
            InvalidInput: shapes do not fit.
            InvalidParameter: a setting is out of its range.
        """
        self.check()
        points, targets, classes = labelled(X, y)
        seen = finite_array(pictures, name="pictures").reshape(len(points), -1)
        if spread is not None and np.shape(spread) != tuple(points.shape):
            raise InvalidInput(f"spread: expected shape {tuple(points.shape)}")
        sigma = None if spread is None else torch.as_tensor(np.asarray(spread, dtype=np.float32))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(self.random_state))
            run = _Run(self, points, targets, classes, _components(seen), seen.shape[1], sigma)
            self.network_, predictor = run.train(report)
        self.predictor_ = _affine(predictor, self._size())
        return self

    def predictor(self) -> Network:
        """Return the classifier that the network was trained with."""
        self.network()
        return self.predictor_


class _Run:
    """One training, with its three networks and their optimisers."""

    def __init__(
        self,
        part: CodedObfuscator,
        points: torch.Tensor,
        targets: torch.Tensor,
        classes: int,
        pictures: torch.Tensor,
        pixels: int,
        spread: torch.Tensor | None,
    ) -> None:
        self.points, self.targets, self.pictures, self.pixels = points, targets, pictures, pixels
        self.spread, self.part, self.row = spread, part, CODED_ROWS[part.row]
        self.sign = 1.0 if part.sign == "plus" else -1.0
        outputs = part.outputs
        self.network = relu_network([points.shape[1], *part.hidden, outputs])
        self.predictor = _linear_head(outputs, classes)
        self.adversary = relu_network([outputs, 64, pictures.shape[1]])
        self.optimizers = [
            torch.optim.Adam(module.parameters(), lr=part.learning_rate, fused=True)
            for module in (self.network, self.predictor, self.adversary)
        ]

    def train(self, report: Report) -> tuple[nn.Sequential, nn.Sequential]:
        rows = len(self.points)
        held = torch.arange(rows - max(rows // 20, 1), rows)
        best, kept = np.inf, self._state()
        for epoch in range(self.part.epochs):
            for module in (self.network, self.predictor, self.adversary):
                module.train()
            for batch in torch.split(torch.randperm(int(held[0])), self.part.batch_size):
                if len(batch) > 1:
                    self._step(batch)
            score = self._score(held)
            if score < best:
                best, kept = score, self._state()
            report(f"obfuscator {self.part.row}", epoch + 1, self.part.epochs, score)
        self.network.load_state_dict(kept[0])
        self.predictor.load_state_dict(kept[1])
        return self.network.eval(), self.predictor.eval()

    def _step(self, rows: torch.Tensor) -> None:
        points = self.points[rows]
        if self.spread is not None:
            points = points + self.spread[rows] * torch.randn_like(points)
        labels, pictures = self.targets[rows], self.pictures[rows]
        released = self.network(points)
        shown = released.detach()
        noise = _laplace(shown, self.row.noise) if self.row.noise else 0.0
        self._update(1, functional.cross_entropy(self.predictor(shown + noise), labels))
        if self.row.alpha:
            self._update(2, self._rebuilding(shown, pictures))
        task = functional.cross_entropy(self.predictor(released), labels)
        loss = (1.0 - self.row.alpha) * task
        if self.row.alpha:
            loss = loss + self.sign * self.row.alpha * self._rebuilding(released, pictures)
        self._update(0, loss)

    def _update(self, number: int, loss: torch.Tensor) -> None:
        optimizer = self.optimizers[number]
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimizer.step()

    def _rebuilding(self, released: torch.Tensor, pictures: torch.Tensor) -> torch.Tensor:
        """Squared error of the adversary, a mean over the pixels of a picture."""
        missed: torch.Tensor = self.adversary(released) - pictures
        return missed.square().sum(dim=1).mean() / self.pixels

    @torch.no_grad()
    def _score(self, rows: torch.Tensor) -> float:
        released = self.network.eval()(self.points[rows])
        task = functional.cross_entropy(self.predictor.eval()(released), self.targets[rows])
        rebuilt = self._rebuilding(released, self.pictures[rows])
        return float(self.row.alpha * rebuilt + (1.0 - self.row.alpha) * task)

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        first, second = (
            {name: value.clone() for name, value in module.state_dict().items()}
            for module in (self.network, self.predictor)
        )
        return first, second


def _linear_head(outputs: int, classes: int) -> nn.Sequential:
    """Return five linear layers with batch normalisation and dropout between them. The code's
    activations have slope 1, so the whole is affine once trained.
    """
    layers: list[nn.Module] = []
    width = outputs
    for share in _DROPPED:
        layers += [nn.Linear(width, _WIDTH), nn.BatchNorm1d(_WIDTH), nn.Dropout(share)]
        width = _WIDTH
    return nn.Sequential(*layers, nn.Linear(width, classes))


def _affine(head: nn.Sequential, inputs: int) -> Network:
    """Return a trained head as one affine layer."""
    with torch.no_grad():
        head.double()
        bias = head(torch.zeros(1, inputs, dtype=torch.float64))
        weight = head(torch.eye(inputs, dtype=torch.float64)) - bias
    return affine_chain([weight.T.numpy()], [bias[0].numpy()])


def _components(pictures: Array) -> torch.Tensor:
    """Return pictures in their first principal directions, which keep squared distances."""
    some = torch.as_tensor(pictures[:_SEEN], dtype=torch.float32)
    center = some.mean(dim=0)
    directions = torch.pca_lowrank(some - center, q=min(_DIRECTIONS, *some.shape), niter=4)[2]
    return (torch.as_tensor(pictures, dtype=torch.float32) - center) @ directions


def _laplace(like: torch.Tensor, scale: float) -> torch.Tensor:
    law = torch.distributions.Laplace(0.0, scale, validate_args=False)
    return law.sample(like.shape)
