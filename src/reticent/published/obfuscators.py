"""Obfuscators of the posthoc papers: as their text says, and as their authors' code trains them.

Facts about the code come from the public repository of Singh and others, commits 8cd81ff, 7384760
and abc903c (May to September 2022). Nothing of its source is here. It may differ from what made the
printed tables.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count, counts, finite_array, one_of, probability
from reticent.core.errors import InvalidInput
from reticent.core.settings import learned, with_settings
from reticent.networks import Network, affine_chain
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network
from reticent.training.parts.contract import seed_of
from reticent.training.parts.obfuscators import Obfuscator, Outputs
from reticent.training.progress import Report, silent

Sign = Literal["minus", "plus"]

CODED_ROWS = {
    "Encoder": (0.0, 0.0),
    "ARL": (0.9, 0.0),
    "C": (0.001, 0.0),
    "N": (0.001, 0.1),
    "ARL-C": (0.99, 0.0),
    "ARL-N": (0.99, 0.01),
    "C-N": (0.001, 0.01),
    "ARL-C-N": (0.99, 0.01),
}
"""The code's configurations for MNIST, by row: weight of the adversary's term, in [0, 1), which is
*added*, and scale of the Laplace noise in the predictor's own step. The contrastive term has no
gradient, so C says nothing: ARL-N and ARL-C-N are one program.
"""

PUBLISHED_ROWS = tuple(CODED_ROWS)
"""The eight rows of the published table."""

_SIGMA = 0.01  # of the text's noise
_DROPPED = (0.2, 0.2, 0.1, 0.1)
_DIRECTIONS = 40  # principal components of a picture that the code's adversary rebuilds
_WIDTH = 10
_SEEN = 10_000


@with_settings
class _Printed(Obfuscator):
    """What both obfuscators share."""

    row: str = "Encoder"
    batch_size: int = 128
    learning_rate: float = 1e-3
    sign: Sign
    epochs: int
    random_state: int | np.random.RandomState | None = None

    network_: nn.Sequential = learned()
    predictor_: nn.Sequential | Network = learned()

    @override
    def check(self) -> None:
        one_of(self.row, PUBLISHED_ROWS, name="row")
        one_of(self.sign, ("minus", "plus"), name="sign")
        self._sizes()
        counts(self.hidden, name="hidden")
        self._config()

    def _config(self) -> TrainingConfig:
        passes, rate = self.epochs, self.learning_rate
        return TrainingConfig(epochs=passes, batch_size=self.batch_size, learning_rate=rate)


@with_settings
class PublishedObfuscator(_Printed):
    """An obfuscator as the posthoc papers' text says: a classifier's loss and the row's terms.

    *ARL* takes alpha times a proxy adversary's reconstruction loss off, with weight 1 - alpha on
    the classifier's loss. The adversary takes a step of its own on every batch. *C* adds the
    contrastive loss of all pairs of a batch. *N* adds Gaussian noise of sigma .01 to what
    classifier and adversary are shown. It is too small, and of the wrong law, to prove anything.

    Differs from the paper: the adversary's loss is clipped at the loss of the best constant guess,
    because beyond that there is nothing left to hide. Unclipped the term has no lower bound, and
    the obfuscator would win by growing without end.

    Args:
        row: a name of ``PUBLISHED_ROWS``, such as "ARL-C-N". "Encoder" has no term.
        alpha: weight of the adversary's term, in (0, 1) (published: 0.99).
        sign: "minus" as the text says, or "plus" as the authors' code has it, which helps the
            adversary and needs no clip.
        outputs: released values per row. A tuple is tried out on calibration data.
        hidden: widths of the hidden layers.
        epochs: passes over the embeddings.
        batch_size: embeddings per step.
        learning_rate: the rate of Adam (published: 1e-3).
        random_state: seed of training. None takes that of the estimator which it is a part of.

    Attributes:
        network_: the trained network.
        predictor_: the classifier that it was trained with, which saw no release's noise.

    Example:
        >>> points = np.random.default_rng(0).normal(size=(64, 2))
        >>> part = PublishedObfuscator(row="N", outputs=3, hidden=(4,), epochs=1, random_state=0)
        >>> part.fit(points, (points[:, 0] > 0).astype(int)).network()[-1].out_features
        3

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), table 1 and supplement D.

    See Also:
        reticent.published.CodedObfuscator: as the authors' code trains it.
        reticent.NoiseAware: an obfuscator that is trained for the noise of its release.
    """

    alpha: float = 0.99
    sign: Sign = "minus"
    outputs: Outputs = (4, 6)
    hidden: tuple[int, ...] = (64,)
    epochs: int = 20

    @override
    def check(self) -> None:
        super().check()
        probability(self.alpha, name="alpha", allow_zero=False)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, *, report: Report = silent) -> Self:
        """Train one network, whatever it will be released with.

        Args:
            X: embeddings, shape (n, d).
            y: shape (n,), classes 0, 1, ...
            report: a callback that is told after every epoch.

        Raises:
            InvalidInput: embeddings and labels do not fit.
            InvalidParameter: a setting is out of its range, or there are several numbers of
                outputs.
        """
        self.check()
        points, targets, classes = labelled(X, y)
        outputs, terms = self._size(), self.row.split("-")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(self.random_state))
            network = relu_network([points.shape[1], *self.hidden, outputs])
            classifier = relu_network([outputs, 64, classes])
            hiding = _hiding(points, outputs, self.alpha, self.sign) if "ARL" in terms else None

            def loss(rows: torch.Tensor, _: float) -> torch.Tensor:
                released: torch.Tensor = network(points[rows])
                if "N" in terms:
                    released = released + _SIGMA * torch.randn_like(released)
                value = functional.cross_entropy(classifier(released), targets[rows])
                if hiding is not None:
                    value = value * (1.0 - self.alpha) + hiding(released, points[rows])
                return value + contrastive(released, targets[rows]) if "C" in terms else value

            minimise(
                loss,
                [*network.parameters(), *classifier.parameters()],
                self._config(),
                rows=len(points),
                decay=False,
                stage=f"obfuscator {self.row}",
                report=report,
            )
        self.network_, self.predictor_ = network.eval(), classifier.eval()
        return self


def _hiding(
    points: torch.Tensor, outputs: int, alpha: float, sign: Sign
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return the text's adversarial term, given released values and the points behind them. Each
    call is one step of the adversary too.
    """
    adversary = relu_network([outputs, 64, 64, points.shape[1]])
    optimizer = torch.optim.Adam(adversary.parameters(), lr=1e-3)
    ceiling = points.var(dim=0, correction=0).mean().item()

    def term(released: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        _step(optimizer, functional.mse_loss(adversary(released.detach()), given))
        rebuilt = functional.mse_loss(adversary(released), given)
        return alpha * rebuilt if sign == "plus" else -alpha * rebuilt.clamp(max=ceiling)

    return term


def contrastive(
    released: torch.Tensor, labels: torch.Tensor, *, margin: float = 25.0
) -> torch.Tensor:
    """Return the mean over all pairs of a batch: the squared distance of equal labels, the squared
    shortfall below the margin of others.

    Args:
        released: shape (n, m).
        labels: shape (n,).
        margin: distance from which different labels cost nothing (published: 25).

    Reference: Hadsell, Chopra and LeCun, "Dimensionality reduction by learning an invariant
    mapping", CVPR 2006, equation 4.
    """
    first, second = torch.triu_indices(len(labels), len(labels), offset=1)
    squared = (released[first] - released[second]).square().sum(dim=1)
    distance = squared.clamp(min=1e-12).sqrt()
    cost = torch.where(
        labels[first] == labels[second], squared, (margin - distance).clamp(min=0).square()
    )
    return cost.mean() if len(cost) else released.new_zeros(())


@with_settings
class CodedObfuscator(_Printed):
    """An obfuscator trained as the authors' code does, with the predictor that it is trained with.

    The adversary rebuilds the picture, its loss is a mean over pixels, and it enters the
    obfuscator's loss with a *plus* sign: the obfuscator helps it. The contrastive term has no
    gradient and is left out. The predictor is linear at test time and never sees a release's noise.

    Differs from the code: the adversary is a dense network on 40 principal components, and the pass
    that is kept is the best one on held-out training rows. The code keeps the best on test rows.

    Args:
        row: a name of ``CODED_ROWS``.
        sign: "plus" as coded, or "minus" as the text says.
        outputs: number of released values.
        epochs: passes over the embeddings (the code: 50 to 300).
        batch_size: embeddings per step, at least 2.
        hidden, learning_rate, random_state: as for ``PublishedObfuscator``.

    Attributes:
        network_: the trained network.
        predictor_: the affine classifier on its outputs.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> points = rng.normal(size=(200, 2))
        >>> part = CodedObfuscator(row="ARL", outputs=2, hidden=(4,), epochs=1, random_state=0)
        >>> part = part.fit(points, (points[:, 0] > 0).astype(int), pictures=points)
        >>> part.predictor_.output_dimension
        2

    See Also:
        reticent.published.PublishedObfuscator: as the text says, with the reference.
    """

    sign: Sign = "plus"
    outputs: int = 8
    hidden: tuple[int, ...] = (8, 8)
    epochs: int = 25

    @override
    def check(self) -> None:
        super().check()
        count(self.batch_size, name="batch_size", minimum=2)  # of which a variance is taken

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
        outputs, (alpha, scale) = self._size(), CODED_ROWS[self.row]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(self.random_state))
            parts = _components(seen)
            network = relu_network([points.shape[1], *self.hidden, outputs])
            predictor = _linear_head(outputs, classes)
            adversary = relu_network([outputs, 64, parts.shape[1]])
            optimizers = [
                torch.optim.Adam(each.parameters(), lr=self.learning_rate, fused=True)
                for each in (network, predictor, adversary)
            ]

            def task(released: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
                return functional.cross_entropy(predictor(released), targets[rows])

            def rebuilding(released: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
                missed: torch.Tensor = adversary(released) - parts[rows]
                return missed.square().sum(dim=1).mean() / seen.shape[1]

            def step(rows: torch.Tensor) -> None:
                given = points[rows]
                if sigma is not None:
                    given = given + sigma[rows] * torch.randn_like(given)
                released = network(given)
                shown = released.detach()
                _step(optimizers[1], task(shown + _laplace(shown, scale), rows))
                loss = (1.0 - alpha) * task(released, rows)
                if alpha:
                    _step(optimizers[2], rebuilding(shown, rows))
                    rebuilt = alpha * rebuilding(released, rows)
                    loss = loss + rebuilt if self.sign == "plus" else loss - rebuilt
                _step(optimizers[0], loss)

            held = torch.arange(len(points) - max(len(points) // 20, 1), len(points))
            best, kept = np.inf, (network, predictor)
            for epoch in range(self.epochs):
                predictor.train()
                for rows in torch.split(torch.randperm(int(held[0])), self.batch_size):
                    if len(rows) > 1:
                        step(rows)
                predictor.eval()
                with torch.no_grad():
                    released = network(points[held])
                    score = float(
                        alpha * rebuilding(released, held) + (1.0 - alpha) * task(released, held)
                    )
                if score < best:
                    best, kept = score, deepcopy((network, predictor))
                report(f"obfuscator {self.row}", epoch + 1, self.epochs, score)
        self.network_, self.predictor_ = kept[0].eval(), _affine(kept[1], outputs)
        return self


def _step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    torch.autograd.backward(loss)
    optimizer.step()


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


def _laplace(like: torch.Tensor, scale: float) -> torch.Tensor | float:
    law = torch.distributions.Laplace(0.0, scale, validate_args=False)
    return law.sample(like.shape) if scale else 0.0
