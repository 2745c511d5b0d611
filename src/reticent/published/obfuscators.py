"""Obfuscators as published, trained on a classifier's loss and any combination of regularisers,
chosen by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional
from typing_extensions import override

from reticent.core.checks import count, counts, one_of, positive, probability
from reticent.core.errors import UnknownName
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network
from reticent.training.parts.contract import seed_of
from reticent.training.parts.obfuscators import Obfuscator, Outputs
from reticent.training.progress import Report, silent

Sign = Literal["minus", "plus"]

PUBLISHED_ALPHA = 0.99
"""The weight of the adversary's term in the published table."""


class Regulariser:
    """The neutral regulariser, which changes nothing. Each published one overrides what it needs.

    Attributes:
        name: the word by which a row of the published table names it.
    """

    name: str = "none"

    def prepare(self, embeddings: torch.Tensor, outputs: int) -> None:
        """Look at the training embeddings (n, d) and the obfuscator's output dimension once, before
        training.
        """

    def perturb(self, representation: torch.Tensor) -> torch.Tensor:
        """Return the representation that classifier and adversary are shown, from the obfuscated
        one (n, m).
        """
        return representation

    def task_weight(self) -> float:
        """Return the factor on the task loss."""
        return 1.0

    def penalty(
        self, representation: torch.Tensor, embeddings: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """Return the term that is added to the loss for a batch, a differentiable scalar."""
        return representation.new_zeros(())


class Adversarial(Regulariser):
    """Minus alpha times a proxy adversary's reconstruction loss, with weight 1 - alpha on the task
    loss.

    The adversary takes one step of its own on every batch. Its loss is clipped at the loss of the
    best constant guess, because beyond that there is nothing left to hide. Unclipped the term has
    no lower bound, and the obfuscator would win by growing without end.

    Args:
        alpha: weight of the adversary's term in (0, 1) (published: 0.99).
        sign: "minus" as the text says, or "plus" as the authors' code of 2022 has it, which helps
            the adversary and needs no clip.

    Reference:
        Singh et al., "Posthoc privacy guarantees for collaborative inference", supplement D.
    """

    name = "arl"

    def __init__(self, alpha: float = PUBLISHED_ALPHA, sign: Sign = "minus") -> None:
        self.alpha = alpha
        self.sign = sign

    def prepare(self, embeddings: torch.Tensor, outputs: int) -> None:
        """Build the adversary, and note the loss of the best constant guess."""
        self._adversary = relu_network([outputs, 64, 64, embeddings.shape[1]])
        self._optimizer = torch.optim.Adam(self._adversary.parameters(), lr=1e-3)
        self._ceiling = embeddings.var(dim=0, correction=0).mean().item()

    def task_weight(self) -> float:
        """Return 1 - alpha."""
        return 1.0 - self.alpha

    def penalty(
        self, representation: torch.Tensor, embeddings: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """Make one step of the adversary. Return minus alpha times its clipped reconstruction
        loss.
        """
        own = functional.mse_loss(self._adversary(representation.detach()), embeddings)
        self._optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(own)
        self._optimizer.step()
        reconstruction = functional.mse_loss(self._adversary(representation), embeddings)
        if self.sign == "plus":
            return self.alpha * reconstruction
        return -self.alpha * reconstruction.clamp(max=self._ceiling)


class Contrastive(Regulariser):
    """Squared distance of pairs with equal labels, squared shortfall below the margin of all other
    pairs.

    Args:
        weight: lambda (published: 1).
        margin: distance from which different labels cost nothing (published: 25).

    Reference:
        Hadsell, Chopra, LeCun, "Dimensionality reduction by learning an invariant mapping", CVPR
        2006, equation 4.
    """

    name = "contrastive"

    def __init__(self, weight: float = 1.0, margin: float = 25.0) -> None:
        self.weight = weight
        self.margin = margin

    def penalty(
        self, representation: torch.Tensor, embeddings: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """Return the mean over all pairs of a batch."""
        first, second = torch.triu_indices(len(labels), len(labels), offset=1)
        squared = (representation[first] - representation[second]).square().sum(dim=1)
        same = labels[first] == labels[second]
        distance = squared.clamp(min=1e-12).sqrt()
        cost = torch.where(same, squared, (self.margin - distance).clamp(min=0).square())
        return self.weight * cost.mean() if len(cost) else representation.new_zeros(())


class GaussianNoise(Regulariser):
    """Gaussian noise on the obfuscated representation during training.

    It regularises. It is too small, and of the wrong distribution, to prove anything.

    Args:
        sigma: standard deviation (published: 0.01).
    """

    name = "noise"

    def __init__(self, sigma: float = 0.01) -> None:
        self.sigma = sigma

    def perturb(self, representation: torch.Tensor) -> torch.Tensor:
        """Return the representation plus fresh noise."""
        return representation + self.sigma * torch.randn_like(representation)


REGULARISERS: dict[str, Callable[[], Regulariser]] = {
    Adversarial.name: Adversarial,
    Contrastive.name: Contrastive,
    GaussianNoise.name: GaussianNoise,
}
"""Regularisers by name, each with its published settings. The empty list is the plain encoder."""

PUBLISHED_ROWS: dict[str, tuple[str, ...]] = {
    "Encoder": (),
    "ARL": ("arl",),
    "C": ("contrastive",),
    "N": ("noise",),
    "ARL-C": ("arl", "contrastive"),
    "ARL-N": ("arl", "noise"),
    "C-N": ("contrastive", "noise"),
    "ARL-C-N": ("arl", "contrastive", "noise"),
}
"""The eight rows of the published table."""


@dataclass(frozen=True, kw_only=True)
class ObfuscatorConfig(TrainingConfig):
    """Everything that decides a published obfuscator, apart from the embeddings.

    Attributes:
        regularisers: names from ``REGULARISERS``, empty for the plain encoder.
        hidden: widths of the hidden layers.
        outputs: dimension of the obfuscated representation.
        alpha: weight of the adversary's term in (0, 1), where "arl" is named.
        sign: "minus" for an adversary that is worked against, "plus" for one that is helped.
    """

    regularisers: tuple[str, ...] = ()
    hidden: tuple[int, ...] = (32,)
    outputs: int = 8
    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 1e-3
    alpha: float = PUBLISHED_ALPHA
    sign: Sign = "minus"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.regularisers:
            if name not in REGULARISERS:
                raise UnknownName(
                    f"regulariser={name!r}: expected names from {', '.join(REGULARISERS)}"
                )
        count(self.outputs, name="outputs")
        one_of(self.sign, ("minus", "plus"), name="sign")
        probability(self.alpha, name="alpha", allow_zero=False)


def train_obfuscator(
    embeddings: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: ObfuscatorConfig,
    *,
    report: Report = silent,
) -> tuple[nn.Sequential, nn.Sequential]:
    """Train a ReLU network on embeddings, with a classifier and the named regularisers.

    Args:
        embeddings: shape (n, d).
        labels: shape (n,), integers 0..classes - 1.
        config: a row of the table, sizes and settings.
        report: a callback that is told after every epoch.

    Returns:
        Linear and ReLU layers in turn, from d inputs to ``config.outputs`` outputs, in evaluation
        mode. Beside them the classifier that they were trained with.

    Raises:
        InvalidInput: embeddings and labels that do not fit.

    Example:
        >>> import numpy as np
        >>> points = np.random.default_rng(0).normal(size=(64, 2))
        >>> row = ObfuscatorConfig(regularisers=("noise",), hidden=(4,), outputs=3, epochs=1)
        >>> network, classifier = train_obfuscator(points, (points[:, 0] > 0).astype(int), row)
        >>> network[-1].out_features, classifier[-1].out_features
        (3, 2)
    """
    points, targets, classes = labelled(embeddings, labels)
    torch.manual_seed(config.seed)
    network = relu_network([points.shape[1], *config.hidden, config.outputs])
    classifier = relu_network([config.outputs, 64, classes])
    regularisers = _prepared(config, points)

    def loss(rows: torch.Tensor, _: float) -> torch.Tensor:
        representation: torch.Tensor = network(points[rows])
        for regulariser in regularisers:
            representation = regulariser.perturb(representation)
        value = functional.cross_entropy(classifier(representation), targets[rows])
        for regulariser in regularisers:
            value = value * regulariser.task_weight()
        for regulariser in regularisers:
            value = value + regulariser.penalty(representation, points[rows], targets[rows])
        return value

    minimise(
        loss,
        [*network.parameters(), *classifier.parameters()],
        config,
        rows=len(points),
        decay=False,
        stage="obfuscator " + ("-".join(config.regularisers) or "encoder"),
        report=report,
    )
    return network.eval(), classifier.eval()


def _prepared(config: ObfuscatorConfig, points: torch.Tensor) -> list[Regulariser]:
    made = [
        Adversarial(config.alpha, config.sign) if name == Adversarial.name else REGULARISERS[name]()
        for name in config.regularisers
    ]
    for regulariser in made:
        regulariser.prepare(points, config.outputs)
    return made


class PublishedObfuscator(Obfuscator):
    """An obfuscator of an earlier paper: a classifier's loss and any combination of regularisers.

    Args:
        regularisers: names of regularisers ("arl", "contrastive", "noise"), none for the plain
            encoder.
        outputs: released values per row. A tuple is tried out on calibration data.
        hidden: widths of the hidden layers.
        epochs: passes over the embeddings.
        batch_size: embeddings per step.
        learning_rate: the rate of Adam (published: 1e-3).
        random_state: seed of training. None takes that of the estimator which it is a part of.

    Attributes:
        network_: the trained network.

    Example:
        >>> points = np.random.default_rng(0).normal(size=(64, 2))
        >>> part = PublishedObfuscator("noise", outputs=3, hidden=(4,), epochs=1, random_state=0)
        >>> part.fit(points, (points[:, 0] > 0).astype(int)).network()[-1].out_features
        3

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), table 1.

    See Also:
        reticent.NoiseAware: an obfuscator that is trained for the noise of its release.
    """

    def __init__(
        self,
        *regularisers: str,
        outputs: Outputs = (4, 6),
        hidden: tuple[int, ...] = (64,),
        epochs: int = 20,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.regularisers = regularisers
        self.outputs = outputs
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    @classmethod
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads no names from a constructor that takes any number of arguments.
        return sorted(inspect.signature(cls).parameters)

    def __sklearn_clone__(self) -> Self:
        parameters = self.get_params()
        return type(self)(*parameters.pop("regularisers"), **parameters)

    @override
    def check(self) -> None:
        for size in self._sizes():
            self._config(size)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, *, report: Report = silent) -> Self:
        """Train one network, whatever it will be released with.

        Args:
            X: embeddings, shape (n, d).
            y: shape (n,), classes 0, 1, ...
            report: a callback that is told after every epoch.

        Raises:
            InvalidInput: embeddings and labels do not fit.
            InvalidParameter: there are several numbers of outputs.
        """
        with torch.random.fork_rng(devices=[]):
            config = self._config(self._size())
            self.network_, self._classifier = train_obfuscator(X, y, config, report=report)
        return self

    def predictor(self) -> nn.Sequential:
        """Return the classifier that the network was trained with, which saw no release's noise."""
        self.network()
        return self._classifier

    def _config(self, outputs: int) -> ObfuscatorConfig:
        return ObfuscatorConfig(
            regularisers=tuple(self.regularisers),
            hidden=counts(self.hidden, name="hidden"),
            outputs=outputs,
            epochs=count(self.epochs, name="epochs"),
            batch_size=self.batch_size,
            learning_rate=positive(self.learning_rate, name="learning_rate"),
            seed=seed_of(self.random_state),
        )
